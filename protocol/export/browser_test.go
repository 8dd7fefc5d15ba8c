package export

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// patience is how long a test waits for what must happen; a busy machine is slow.
const patience = 60 * time.Second

// browser is headless Chromium with one page, spoken to over its debugging
// protocol (chromedevtools.github.io/devtools-protocol).
type browser struct {
	t       *testing.T
	conn    *websocket.Conn
	session string
	id      int
	// What the page did that it must not.
	requests, complaints []string
}

// openBrowser starts Chromium, or skips: it is a download of 300 MB, which
// make test does not impose. HUBBUB_REQUIRE_CHROMIUM=1 makes it a must.
func openBrowser(t *testing.T) *browser {
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
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
	b := &browser{t: t}
	select {
	case url := <-address:
		if b.conn, _, err = websocket.DefaultDialer.Dial(url, nil); err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("Chromium does not answer")
	}
	t.Cleanup(func() { _ = b.conn.Close() })
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log", "Accessibility"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call does one thing and waits for its result; what the page does meanwhile
// is noted.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.id++
	message := map[string]any{"id": b.id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	if err := b.conn.WriteJSON(message); err != nil {
		b.t.Fatal(err)
	}
	_ = b.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		var answer struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := b.conn.ReadJSON(&answer); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		if answer.ID != b.id {
			b.note(answer.Method, answer.Params)
			continue
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(answer.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

func (b *browser) note(method string, params json.RawMessage) {
	switch method {
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		_ = json.Unmarshal(params, &p)
		b.requests = append(b.requests, p.Request.URL)
	case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening":
		b.complaints = append(b.complaints, method+": "+string(params))
	}
}

// eval runs an expression in the page and answers its value.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return r.Result.Value
}

// until polls an expression until it is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if b.eval("Boolean("+expression+")") == true {
			return
		}
	}
	b.t.Fatalf("waited in vain for %s; clock %v, audio %v", expression, b.eval("document.getElementById('clock')?.textContent"), b.eval("document.getElementById('audio')?.currentTime"))
}

func (b *browser) open(path string) {
	b.t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		b.t.Fatal(err)
	}
	b.requests, b.complaints = nil, nil
	b.call("Page.navigate", map[string]any{"url": "file://" + abs}, nil)
	b.until("location.protocol === 'file:' && document.readyState === 'complete'")
}

func (b *browser) press(key, code string, vk int) {
	b.t.Helper()
	p := map[string]any{"type": "keyDown", "key": key, "code": code, "windowsVirtualKeyCode": vk}
	if len(key) == 1 {
		p["text"] = key
	}
	b.call("Input.dispatchKeyEvent", p, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": code, "windowsVirtualKeyCode": vk}, nil)
}

// click presses the mouse in the middle of what a selector finds.
func (b *browser) click(selector string) {
	b.t.Helper()
	at, _ := b.eval("(() => { const r = document.querySelector(" + quote(selector) + "); r.scrollIntoView({block:'center'}); const q = r.getBoundingClientRect(); return [q.x + q.width / 2, q.y + q.height / 2] })()").([]any)
	if len(at) != 2 {
		b.t.Fatalf("nothing is %s", selector)
	}
	for _, typ := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": typ, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
}

func quote(s string) string { q, _ := json.Marshal(s); return string(q) }

// shot keeps a picture when HUBBUB_SHOTS names a folder.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("HUBBUB_SHOTS")
	if dir == "" {
		return
	}
	var r struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &r)
	png, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// quiet fails on anything the page loaded beside itself and the given files,
// and on any complaint of the browser.
func (b *browser) quiet(allowed string) {
	b.t.Helper()
	b.eval("1") // whatever was reported before this is noted now
	re := regexp.MustCompile(allowed)
	for _, r := range b.requests {
		if !re.MatchString(r) {
			b.t.Errorf("the page asked for %.200s", r)
		}
	}
	for _, c := range b.complaints {
		b.t.Errorf("the browser complains: %.500s", c)
	}
}
