package cli

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// Of a long list no row is lost. It takes at most one write per 32 KiB.
func TestInspectMany(t *testing.T) {
	var out locked
	code := run(t.Context(), []string{"inspect"},
		strings.NewReader(strings.Repeat(random+"\n", 20_000)), &out, io.Discard)
	if most := out.Len()/(32<<10) + 1; code != 0 || out.writes > most ||
		strings.Count(out.String(), "\n") != 20_001 {
		t.Errorf("code %d, %d writes for %d bytes, want at most %d", code, out.writes, out.Len(),
			most)
	}
}

// A line may have the 1000 spans that trace prints in one. The ID of their trace is shown once.
func TestLongLine(t *testing.T) {
	span := `{"traceId":"` + random + `","name":"` + strings.Repeat("x", 400) + `"}`
	r := command(t, `{"spans":[`+span+strings.Repeat(","+span, 999)+"]}\n\x00\xff\n"+random,
		"inspect")
	r.want(t, 0, "KIND", "")
	if ids := strings.Count(r.out, random); ids != 2 {
		t.Errorf("%d IDs", ids)
	}
}

// On a full disk nothing is lost silently.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	for _, args := range []string{"new", "new -n 100000", "version", "inspect " + random} {
		var errOut bytes.Buffer
		code := run(t.Context(), strings.Fields(args), strings.NewReader(""), full, &errOut)
		if code != 2 || !strings.Contains(errOut.String(), "no space left") {
			t.Errorf("%q: code %d, %q", args, code, errOut.String())
		}
	}
}

// An ID is shown when its line has arrived, not when 64 KiB or the next line have.
func TestInspectAtOnce(t *testing.T) {
	in, feed := io.Pipe()
	shown, out := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- run(t.Context(), []string{"inspect"}, in, out, io.Discard); out.Close() }()
	lines := bufio.NewScanner(shown)
	for _, text := range []string{random + "\n" + random[:5], random[5:] + "\n", random + "\n"} {
		go func() { _, _ = io.WriteString(feed, text) }()
		for ok := false; !ok; ok = strings.Contains(lines.Text(), "128 bits") {
			if !lines.Scan() {
				t.Fatal("the output ended")
			}
		}
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
