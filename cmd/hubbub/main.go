// Command hubbub shows who is talking, live, in a terminal.
package main

import "os"

func main() {
	if os.Getenv(watcherEnv) != "" {
		os.Exit(watch())
	}
	app := &App{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(app.Main())
}
