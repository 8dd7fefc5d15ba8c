package words

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// asRecogniser makes the test binary a recogniser that behaves as it says.
const asRecogniser = "HUBBUB_TEST_RECOGNISER"

func TestMain(m *testing.M) {
	switch os.Getenv(asRecogniser) {
	case "":
		os.Exit(testkit.Run(m))
	case "length":
		wav, _ := io.ReadAll(os.Stdin)
		fmt.Printf("%s of %d bytes,\n %s\n", wav[:4], len(wav), strings.Join(os.Args[1:], "|"))
	case "exit":
		fmt.Fprint(os.Stderr, strings.Repeat("loading\n", 1000), "the model is missing\n")
		os.Exit(3)
	case "flood":
		for {
			if _, err := fmt.Print(strings.Repeat("word ", 1000)); err != nil {
				os.Exit(1)
			}
		}
	case "hang":
		time.Sleep(time.Hour)
	}
}
