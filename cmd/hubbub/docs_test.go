package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hubbub/localserver/faults"
	"hubbub/protocol/testkit"
)

// documentation returns the text of every page of documentation, by path from
// the repository's root.
func documentation(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no documentation in %s: %v", pattern, err)
		}
		for _, path := range paths {
			raw := testkit.Must(os.ReadFile(path))(t)
			pages[strings.TrimPrefix(filepath.ToSlash(path), "../../")] = string(raw)
		}
	}
	return pages
}

var (
	// commandLine is a command in a code block, after a pipe, or in inline code.
	commandLine = regexp.MustCompile("(?m)(?:^|`|\\| |&& )(?:bin/)?hubbub( [^`|#>\n]*)?")
	longFlag    = regexp.MustCompile(`--[a-z][a-z-]*`)
	word        = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// allCommands is the root of all commands, with those that cobra adds.
func allCommands() *cobra.Command {
	root := newRoot(&App{Stdout: io.Discard, Stderr: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("bash")
	return root
}

// descend follows the names of commands, and returns the last one and what follows it.
func descend(cmd *cobra.Command, args []string) (*cobra.Command, []string) {
	for len(args) > 0 && word.MatchString(args[0]) && cmd.HasSubCommands() {
		next, _, err := cmd.Find(args[:1])
		if err != nil || next == cmd {
			break
		}
		cmd, args = next, args[1:]
	}
	return cmd, args
}

// TestDocumentedCommandsExist checks every command line in the documentation:
// the command exists and has the flags.
func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	root := allCommands()
	seen := 0
	for page, text := range documentation(t) {
		text = strings.ReplaceAll(text, "\\\n", "")
		for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
			cmd, args := descend(root, strings.Fields(m[1]))
			if cmd == root && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
				if strings.HasPrefix(m[0], "`") || strings.Contains(m[1], "--") {
					t.Errorf("%s: %q names no command", page, m[0])
				}
				continue // a sentence
			}
			seen++
			for _, f := range longFlag.FindAllString(m[1], -1) {
				if name := f[2:]; cmd.Flags().Lookup(name) == nil && name != "help" {
					t.Errorf("%s: %q: %s has no flag %s", page, strings.TrimSpace(m[0]), cmd.CommandPath(), f)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d command lines found: the test looks for them in the wrong way", seen)
	}
}

// quotedCommand is a command in the text of a message or comment.
var quotedCommand = regexp.MustCompile("['`]hubbub((?: [a-z][a-z-]*)+)(?:['`]| [A-Z-])")

// TestCommandsInMessagesExist checks every command that a message or a comment of
// the program names.
func TestCommandsInMessagesExist(t *testing.T) {
	t.Parallel()
	root := allCommands()
	seen := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range quotedCommand.FindAllSubmatch(raw, -1) {
			if cmd, args := descend(root, strings.Fields(string(m[1]))); len(args) > 0 && cmd.HasSubCommands() {
				t.Errorf("%s: hubbub%s is no command", path, m[1])
			}
			seen++
		}
		return err
	})
	if err != nil || seen < 40 {
		t.Errorf("%d commands found: %v", seen, err)
	}
}

// TestEverythingIsDocumented checks that the documentation names every
// command, flag and fault; that of settings is tested with them.
func TestEverythingIsDocumented(t *testing.T) {
	t.Parallel()
	pages := documentation(t)
	var all strings.Builder
	for _, text := range pages {
		all.WriteString(text)
	}
	root := newRoot(&App{Stdout: io.Discard, Stderr: io.Discard})
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if !strings.Contains(all.String(), cmd.CommandPath()) {
			t.Errorf("the documentation does not name %q", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(all.String(), "--"+f.Name) {
				t.Errorf("the documentation does not name the flag --%s of %q", f.Name, cmd.CommandPath())
			}
		})
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
	for _, name := range faults.Names()[1:] { // the first one stands for all HTTP statuses
		if !regexp.MustCompile("[ `]" + regexp.QuoteMeta(name) + "[=@,`]").MatchString(pages["docs/troubleshooting.md"]) {
			t.Errorf("docs/troubleshooting.md does not name the fault %s", name)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
)

// anchors are the anchors of a page's headings.
func anchors(text string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		list = append(list, strings.ReplaceAll(strings.ToLower(noSlug.ReplaceAllString(m[1], "")), " ", "-"))
	}
	return list
}

// TestDocumentedLinksLead checks the links between pages: file and heading
// exist.
func TestDocumentedLinksLead(t *testing.T) {
	t.Parallel()
	pages := documentation(t)
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, anchored := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			}
			path := filepath.Join("..", "..", target)
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, m[1])
				continue
			}
			if !anchored {
				continue
			}
			if text, err := os.ReadFile(path); err != nil || !slices.Contains(anchors(string(text)), anchor) {
				t.Errorf("%s: %s has no heading #%s", page, target, anchor)
			}
		}
	}
}

// sourcePath is a file or a pattern of files of the repository in inline code.
var sourcePath = regexp.MustCompile("`((?:cmd|capture|docs|localserver|protocol|tui)/[^`\\s]*\\.(?:go|json|txt|md|golden))`")

// TestDocumentedFilesExist checks the files that the documentation names. The
// experiments describe the code of their time.
func TestDocumentedFilesExist(t *testing.T) {
	t.Parallel()
	seen := 0
	for page, text := range documentation(t) {
		if strings.HasPrefix(page, "docs/experiments/") {
			continue
		}
		for _, m := range sourcePath.FindAllStringSubmatch(text, -1) {
			seen++
			if found, err := filepath.Glob(filepath.Join("..", "..", m[1])); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d files found in the documentation: the test looks for them in the wrong way", seen)
	}
}

// TestUnitAllowsLowerPriority checks that the systemd unit allows the one call of
// @resources that the server makes: a job lowers the priority of its thread. Others must
// fail: libnuma, which ffmpeg loads, makes some, and systemd would kill ffmpeg for them.
func TestUnitAllowsLowerPriority(t *testing.T) {
	t.Parallel()
	raw := testkit.Must(os.ReadFile(filepath.Join("..", "..", "docs", "hubbub.service")))(t)
	_, later, forbidden := strings.Cut(string(raw), "\nSystemCallFilter=~@privileged @resources\n")
	if forbidden && !strings.Contains(later, "\nSystemCallFilter=setpriority\n") {
		t.Error("docs/hubbub.service forbids setpriority, which jobs call")
	}
	if forbidden && !strings.Contains(later, "\nSystemCallErrorNumber=EPERM\n") {
		t.Error("docs/hubbub.service kills ffmpeg, which calls set_mempolicy")
	}
}
