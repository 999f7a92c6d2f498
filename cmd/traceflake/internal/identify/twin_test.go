package identify

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// asPage prints what the page's script finds in each line of its input, as the vectors have it.
const asPage = `
import { readFileSync } from 'node:fs';
import { identify, idsIn } from './clients/js/inspect/identify.js';
for (const line of JSON.parse(readFileSync(0))) {
  const found = idsIn(line).flatMap((id) => identify(id, Number(process.argv[1])).map((of) => ({
    role: id.role || undefined, id: id.id, kind: of.kind, sequence: of.sequence, parts: of.parts,
    time: of.time && new Date(of.time).toISOString().replace(/\.?0*Z$/, 'Z'), text: of.text })));
  console.log(JSON.stringify(found));
}`

// The page docs/inspect.html finds the same in 10 000 lines: those of testdata, with characters
// changed, added and removed, joined, and within JSON or an address.
func TestTwin(t *testing.T) {
	var seeds []string
	for _, file := range []string{"forms", "reports", "real"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(placeholders.Replace(string(text))) {
			if line, _, ok := strings.Cut(line, " → "); ok {
				seeds = append(seeds, line)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	lines := make([]string, 10_000)
	for i := range lines {
		lines[i] = mutated(r, seeds)
	}
	input, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command("node", "--input-type=module", "--no-warnings", "-e", asPage,
		strconv.FormatInt(now.UnixMilli(), 10))
	node.Dir, node.Stdin = "../../../..", bytes.NewReader(input)
	var problems bytes.Buffer
	node.Stderr = &problems
	output, err := node.Output()
	if err != nil {
		if os.Getenv("CI") == "" && node.ProcessState == nil {
			t.Skip("node is not installed")
		}
		t.Fatalf("%v: %s", err, problems.String())
	}
	x, i, withIDs := Identifier{Now: now}, 0, 0
	for want := range bytes.Lines(output) {
		all, _ := x.Line(lines[i])
		if len(all) > 0 {
			withIDs++
		}
		var page []map[string]any
		if err := json.Unmarshal(want, &page); err != nil {
			t.Fatal(err)
		}
		if got, want := asJSON(t, all), asJSON(t, page); got != want {
			t.Errorf("%q:\nhere     %s\nthe page %s", lines[i], got, want)
		}
		i++
	}
	t.Logf("%d lines, %d with IDs", i, withIDs)
	if i != len(lines) || withIDs < len(lines)/2 {
		t.Error("too few lines")
	}
}

// mutated returns a line that nobody has written.
func mutated(r *rand.Rand, seeds []string) string {
	pick := func() string { return seeds[r.IntN(len(seeds))] }
	line := pick()
	switch r.IntN(6) {
	case 0:
		line += " " + pick()
	case 1:
		text, _ := json.Marshal(map[string]string{"message": line})
		line = string(text)
	case 2:
		line = "https://example.com/?q=" + strings.NewReplacer(" ", "%20", ":", "%3A", "=", "%3D",
			"\"", "%22").Replace(line)
	}
	const alphabet = "0123456789abcdefgxzABCDEFG_-.:=/+\\\"'{}[]()<>%, \tnu…"
	signs := []rune(alphabet)
	text := []rune(line)
	for range r.IntN(4) {
		at := r.IntN(len(text) + 1)
		end := min(at+r.IntN(3), len(text))
		added := make([]rune, r.IntN(3))
		for i := range added {
			added[i] = signs[r.IntN(len(signs))]
		}
		text = append(append(append([]rune{}, text[:at]...), added...), text[end:]...)
	}
	return string(text)
}
