//go:build linux

package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// imageFiles returns the files of a tar archive below 100 MB, by name; folders and
// links are names without content. All users may read and execute what the owner may.
func imageFiles(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		testkit.NoError(t, err)
		testkit.Equal(t, h.Mode>>6&^h.Mode&0o5, 0, h.Name, "has the mode", h.Mode)
		b := testkit.Must(io.ReadAll(io.LimitReader(r, 100<<20)))(t)
		files[path.Clean(h.Name)] = b
	}
}

// TestComposeVolumes: the volumes of docs/compose.yaml are declared, and their names are not taken for a drive of
// Windows, as those of one letter are.
func TestComposeVolumes(t *testing.T) {
	b := testkit.Must(os.ReadFile("../../docs/compose.yaml"))(t)
	_, declared, _ := strings.Cut(string(b), "\nvolumes:\n")
	mounts := regexp.MustCompile(`volumes: \[(.*?):/`).FindAllStringSubmatch(string(b), -1)
	testkit.Equal(t, len(mounts), 5, "mounts")
	for _, m := range mounts {
		if len(m[1]) < 2 || !strings.Contains(declared, "  "+m[1]+":") {
			t.Errorf("volume %q", m[1])
		}
	}
}

// TestContainersVerifyCertificates: only the health check of a container accepts any certificate. In
// the environment, that would hold for every other command in it, and every service.
func TestContainersVerifyCertificates(t *testing.T) {
	for _, name := range []string{"Containerfile", "compose.yaml"} {
		b := testkit.Must(os.ReadFile("../../docs/" + name))(t)
		if strings.Contains(string(b), "HUBBUB_INSECURE") {
			t.Errorf("%s sets HUBBUB_INSECURE", name)
		}
	}
}

// TestImage: the container image of `make image` has the program, CA certificates
// and a folder for data, and nothing else; it is below 40 MB, not of root, has a
// health check, and its program starts where there is no other file.
func TestImage(t *testing.T) {
	file := os.Getenv("HUBBUB_IMAGE")
	if file == "" {
		t.Skip("`make image` builds the image and runs this test")
	}
	f := testkit.Must(os.Open(file))(t)
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() > 40_000_000 {
		t.Errorf("%d bytes, %v", st.Size(), err)
	}
	parts := imageFiles(t, f)
	var manifest []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(parts["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("%v, %d images", err, len(manifest))
	}
	var image struct {
		Config struct {
			User        string
			Entrypoint  []string
			Healthcheck struct{ Test []string }
		} `json:"config"`
	}
	testkit.NoError(t, json.Unmarshal(parts[manifest[0].Config], &image))
	if c := image.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/hubbub"}) || len(c.Healthcheck.Test) < 2 || c.Healthcheck.Test[1] != "/hubbub" {
		t.Errorf("%+v", c)
	}
	files := map[string][]byte{}
	for _, layer := range manifest[0].Layers {
		maps.Copy(files, imageFiles(t, strings.NewReader(string(parts[layer]))))
	}
	for name := range files {
		if !slices.Contains([]string{"hubbub", "data", "etc", "etc/ssl", "etc/ssl/certs", "etc/ssl/certs/ca-certificates.crt"}, name) {
			t.Errorf("it has %s", name)
		}
	}
	root := t.TempDir()
	testkit.NoError(t, os.WriteFile(filepath.Join(root, "hubbub"), files["hubbub"], 0o755))
	chroot, err := exec.LookPath("chroot")
	if os.Getuid() != 0 || err != nil {
		t.Skip("only root may start a program in an empty root folder")
	}
	for _, args := range [][]string{{"/hubbub", "version"}, append(image.Config.Entrypoint, "serve", "--help")} {
		out, err := exec.CommandContext(t.Context(), chroot, append([]string{"--userspec=65532:65532", root}, args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "hubbub") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
