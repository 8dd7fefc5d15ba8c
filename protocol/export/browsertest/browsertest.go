// Package browsertest drives headless Chromium for tests of pages; only tests import it.
package browsertest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol/testkit"
)

// Browser is headless Chromium with one page, spoken to over its debugging
// protocol (chromedevtools.github.io/devtools-protocol).
type Browser struct {
	T       *testing.T
	conn    *websocket.Conn
	session string
	id      int
	// What the page did that it must not.
	requests, complaints []string
}

// Open starts Chromium, or skips: it is a download of 300 MB, which
// make test does not impose. HUBBUB_REQUIRE_CHROMIUM=1 makes it a must.
func Open(t *testing.T) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("HUBBUB_REQUIRE_CHROMIUM") != "" {
			t.Fatal("Chromium is not installed")
		}
		t.Skip("Chromium is not installed")
	}
	profile := t.TempDir()
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio", "--window-size=1200,900", "--no-first-run",
		"--autoplay-policy=no-user-gesture-required", "--remote-debugging-port=0", "--user-data-dir="+profile, "about:blank")
	cmd.Env = append(os.Environ(), "TMPDIR="+testkit.ShortTempDir(t))
	stderr, err := cmd.StderrPipe()
	testkit.NoError(t, err)
	testkit.Start(t, cmd)
	address := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			if _, url, found := strings.Cut(s.Text(), "DevTools listening on "); found {
				address <- url
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-read
		// Its children may still write into the profile for a moment.
		for range 100 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	b := &Browser{T: t}
	select {
	case url := <-address:
		if b.conn, _, err = websocket.DefaultDialer.Dial(url, nil); err != nil {
			t.Fatal(err)
		}
	case <-time.After(testkit.Timeout):
		t.Fatal("Chromium does not respond")
	}
	t.Cleanup(func() { _ = b.conn.Close() })
	var target struct{ TargetID string }
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log", "Accessibility"} {
		b.Call(domain+".enable", nil, nil)
	}
	return b
}

// Call does one thing and waits for its result; what the page does meanwhile
// is noted.
func (b *Browser) Call(method string, params map[string]any, result any) {
	b.T.Helper()
	b.id++
	message := map[string]any{"id": b.id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	testkit.NoError(b.T, b.conn.WriteJSON(message))
	_ = b.conn.SetReadDeadline(time.Now().Add(testkit.Timeout))
	for {
		var response struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := b.conn.ReadJSON(&response); err != nil {
			b.T.Fatalf("%s: %v", method, err)
		}
		if response.ID != b.id {
			b.note(response.Method, response.Params)
			continue
		}
		if response.Error != nil {
			b.T.Fatalf("%s: %s", method, response.Error.Message)
		}
		if result != nil {
			testkit.NoError(b.T, json.Unmarshal(response.Result, result))
		}
		return
	}
}

func (b *Browser) note(method string, params json.RawMessage) {
	switch method {
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		_ = json.Unmarshal(params, &p)
		b.requests = append(b.requests, p.Request.URL)
	case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening":
		b.complaints = append(b.complaints, method+": "+string(params))
	}
}

// Eval runs an expression in the page and returns its value.
func (b *Browser) Eval(expression string) any {
	b.T.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.T.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return r.Result.Value
}

// Until polls an expression until it is true.
func (b *Browser) Until(expression string) {
	b.T.Helper()
	for deadline := time.Now().Add(testkit.Timeout); b.Eval("Boolean("+expression+")") != true; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.T.Fatalf("waited in vain for %s; clock %v, audio %v", expression, b.Eval("document.getElementById('clock')?.textContent"), b.Eval("document.getElementById('audio')?.currentTime"))
		}
	}
}

// OpenFile opens a file.
func (b *Browser) OpenFile(path string) {
	b.T.Helper()
	abs, err := filepath.Abs(path)
	testkit.NoError(b.T, err)
	b.Navigate((&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()) // as the browser writes it
}

// Navigate opens an address, and forgets what earlier pages did.
func (b *Browser) Navigate(address string) {
	b.T.Helper()
	b.requests, b.complaints = nil, nil
	b.Call("Page.navigate", map[string]any{"url": address}, nil)
	b.Until("location.href.startsWith(" + Quote(address) + ") && document.readyState === 'complete'")
}

// Resize sets the size of the window, in pixels.
func (b *Browser) Resize(w, h int) {
	b.T.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": w, "height": h, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Press presses and releases a key; vk is its Windows virtual key code.
func (b *Browser) Press(key, code string, vk int) {
	b.T.Helper()
	p := map[string]any{"type": "keyDown", "key": key, "code": code, "windowsVirtualKeyCode": vk}
	if len(key) == 1 {
		p["text"] = key
	}
	b.Call("Input.dispatchKeyEvent", p, nil)
	b.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": code, "windowsVirtualKeyCode": vk}, nil)
}

// Click presses the mouse in the middle of what a selector finds.
func (b *Browser) Click(selector string) {
	b.T.Helper()
	at, _ := b.Eval("(() => { const r = document.querySelector(" + Quote(selector) + "); r.scrollIntoView({block:'center'}); const q = r.getBoundingClientRect(); return [q.x + q.width / 2, q.y + q.height / 2] })()").([]any)
	if len(at) != 2 {
		b.T.Fatalf("nothing is %s", selector)
	}
	for _, typ := range []string{"mousePressed", "mouseReleased"} {
		b.Call("Input.dispatchMouseEvent", map[string]any{"type": typ, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
}

// Quote is a text as a string of JavaScript.
func Quote(s string) string { q, _ := json.Marshal(s); return string(q) }

// Shot keeps a picture when HUBBUB_SHOTS names a folder.
func (b *Browser) Shot(name string) {
	b.T.Helper()
	dir := os.Getenv("HUBBUB_SHOTS")
	if dir == "" {
		return
	}
	var r struct{ Data string }
	b.Call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &r)
	png, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	testkit.NoError(b.T, err)
}

// Quiet fails on anything the page loaded beside itself and the given files,
// and on any complaint of the browser.
func (b *Browser) Quiet(allowed string) {
	b.T.Helper()
	b.Eval("1") // whatever was reported before this is noted now
	re := regexp.MustCompile(allowed)
	for _, r := range b.requests {
		if !re.MatchString(r) {
			b.T.Errorf("the page asked for %.200s", r)
		}
	}
	for _, c := range b.complaints {
		b.T.Errorf("the browser complains: %.500s", c)
	}
}
