package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// TestRelease: the binaries of `make release` are for the systems and processors that their archives name. Those for
// macOS are signed, without which its ARM processors start none. Those for Linux need no library but those that the
// packages depend on, in the version that they name. Alpine accepts the version of its packages.
func TestRelease(t *testing.T) {
	dir := os.Getenv("HUBBUB_RELEASE")
	if dir == "" {
		t.Skip("`make release` builds the releases and runs this test")
	}
	binary := func(name string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, name, "hubbub*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", name, found, err)
		}
		return found[0]
	}
	for arch, cpu := range map[string]struct {
		elf   elf.Machine
		macho macho.Cpu
		pe    uint16
	}{
		"amd64": {elf.EM_X86_64, macho.CpuAmd64, pe.IMAGE_FILE_MACHINE_AMD64},
		"arm64": {elf.EM_AARCH64, macho.CpuArm64, pe.IMAGE_FILE_MACHINE_ARM64},
	} {
		mac := testkit.Must(macho.Open(binary("portable_darwin_" + arch + "_*")))(t)
		if mac.Cpu != cpu.macho || mac.Type != macho.TypeExec || arch == "arm64" && !machoSigned(mac) {
			t.Errorf("macOS %s: %v, %v, signed %v", arch, mac.Cpu, mac.Type, machoSigned(mac))
		}
		windows := testkit.Must(pe.Open(binary("portable_windows_" + arch + "_*")))(t)
		testkit.Equal(t, windows.Machine, cpu.pe, "Windows", arch)
		for build, libraries := range map[string]string{"portable": "[]", "portaudio": "[libportaudio.so.2 libc.so.6]"} {
			linux := testkit.Must(elf.Open(binary(build + "_linux_" + arch + "_*")))(t)
			needed, err := linux.ImportedLibraries()
			if err != nil || linux.Machine != cpu.elf || fmt.Sprint(needed) != libraries {
				t.Errorf("%s for Linux %s: %v, libraries %v, %v", build, arch, linux.Machine, needed, err)
			}
			if build == "portaudio" {
				packagesNeed(t, dir, arch, glibcOf(t, linux))
			}
		}
		apkVersion(t, dir, arch)
	}
}

// apkVersion expects a version that apk can compare, as apk-package(5) defines it: other suffixes are invalid.
func apkVersion(t *testing.T, dir, arch string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_"+arch+".apk"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	f := testkit.Must(os.Open(files[0]))(t)
	defer f.Close()
	r := testkit.Must(gzip.NewReader(f))(t)
	archive := tar.NewReader(r)
	h := testkit.Must(archive.Next())(t)
	info := testkit.Must(io.ReadAll(archive))(t)
	if valid := regexp.MustCompile(`(?m)^pkgver = \d+(\.\d+)*[a-z]?(_(alpha|beta|pre|rc|cvs|svn|git|hg|p)\d*)*(-r\d+)?$`); h.Name != ".PKGINFO" || !valid.Match(info) {
		t.Errorf("%s for %s: %s", h.Name, arch, info)
	}
}

// machoSigned reports whether a binary of macOS has a code signature.
func machoSigned(f *macho.File) bool {
	const codeSignature = 0x1d // LC_CODE_SIGNATURE, which debug/macho does not name
	for _, l := range f.Loads {
		if b := l.Raw(); f.ByteOrder.Uint32(b) == codeSignature && f.ByteOrder.Uint32(b[12:]) > 0 {
			return true
		}
	}
	return false
}

// glibcOf is the newest version of glibc whose symbols a binary uses: its minor number.
func glibcOf(t *testing.T, f *elf.File) (newest int) {
	t.Helper()
	symbols := testkit.Must(f.ImportedSymbols())(t)
	for _, s := range symbols {
		var minor int
		if n, _ := fmt.Sscanf(s.Version, "GLIBC_2.%d", &minor); n == 1 {
			newest = max(newest, minor)
		}
	}
	if newest == 0 {
		t.Fatal("no symbol of glibc")
	}
	return newest
}

// packagesNeed expects the dependencies of the deb and rpm packages, as far as the machine has programs that read them.
func packagesNeed(t *testing.T, dir, arch string, glibc int) {
	t.Helper()
	for format, c := range map[string]struct {
		query []string
		want  []string
	}{
		"deb": {[]string{"dpkg-deb", "--field", "", "Depends"}, []string{"libportaudio2", fmt.Sprintf("libc6 (>= 2.%d)", glibc)}},
		"rpm": {[]string{"rpm", "-qp", "", "--requires"}, []string{"libportaudio.so.2()(64bit)", fmt.Sprintf("libc.so.6(GLIBC_2.%d)(64bit)", glibc)}},
	} {
		files, err := filepath.Glob(filepath.Join(dir, "*_"+arch+"."+format))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %v, %v", format, files, err)
		}
		if _, err := exec.LookPath(c.query[0]); err != nil {
			t.Logf("%s was not read: %v", format, err)
			continue
		}
		c.query[2] = files[0]
		out, err := exec.Command(c.query[0], c.query[1:]...).Output()
		got := strings.Split(strings.ReplaceAll(string(bytes.TrimSpace(out)), ", ", "\n"), "\n")
		if err != nil || strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("%s for %s needs %q, want %q, %v", format, arch, got, c.want, err)
		}
	}
}
