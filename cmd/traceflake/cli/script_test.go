package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// variables are the environment variables of the command and the scripts.
var variables = []string{"TRACEFLAKE_STORE", "TRACEFLAKE_SECRET_FILE", "TRACEFLAKE_TTL",
	clickhouseVar, "TRACEFLAKE_STROE"}

// TestScripts runs the scripts in testdata. Each one is a session of an operator: files, commands,
// and what they print. Besides testscript's own commands they use
//
//	traceflake ARGS… [<FILE]     it must succeed without a word on stderr
//	code N traceflake ARGS…      it must end with this exit code
//	refuses ARGS… TEXT           it must print nothing but an error with the text, and end with 2
//	save NAME [LINE]             sets a variable to the first word of a line of the output
//	ids FILE N                   prints N trace IDs of now under the first secret of a file
//	place STORE WHERE            moves the server of a store
//
// A store test:NAME is on a server of the script's own. Commands run in this process.
func TestScripts(t *testing.T) {
	scripted := func(ts *testscript.TestScript, args []string) result {
		defer enter(ts)()
		stdin := ""
		if last := len(args) - 1; last >= 0 && strings.HasPrefix(args[last], "<") {
			stdin, args = ts.ReadFile(args[last][1:]), args[:last]
		}
		r := command(t, stdin, args...)
		fmt.Fprint(ts.Stdout(), r.out)
		fmt.Fprint(ts.Stderr(), r.errOut)
		return r
	}
	testscript.RunT(sequential{t}, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			servers.Clear()
			files, err := filepath.Glob(e.WorkDir + "/*")
			for _, file := range files {
				err = errors.Join(err, os.Chmod(file, 0o700)) // some are secrets
			}
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"traceflake": func(ts *testscript.TestScript, _ bool, args []string) {
				if r := scripted(ts, args); r.code != 0 || r.errOut != "" {
					ts.Fatalf("exit code %d, errors %q", r.code, r.errOut)
				}
			},
			"code": func(ts *testscript.TestScript, _ bool, args []string) {
				if r := scripted(ts, args[2:]); strconv.Itoa(r.code) != args[0] {
					ts.Fatalf("exit code %d, want %s", r.code, args[0])
				}
			},
			"refuses": func(ts *testscript.TestScript, _ bool, args []string) {
				args, want := args[:len(args)-1], args[len(args)-1]
				r := scripted(ts, args)
				if r.code != 2 || r.out != "" || !strings.Contains(r.errOut, want) {
					ts.Fatalf("exit code %d, want the error %q", r.code, want)
				}
			},
			"ids": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[1])
				ts.Check(err)
				fmt.Fprint(ts.Stdout(), idsUnder(ts, ts.MkAbs(args[0]), n))
			},
			"save": func(ts *testscript.TestScript, _ bool, args []string) {
				line, err := strconv.Atoi(slices.Concat(args, []string{"1"})[1])
				ts.Check(err)
				words := strings.Fields(lines(ts.ReadFile("stdout"))[line-1])
				ts.Setenv(args[0], words[0])
			},
			"place": func(_ *testscript.TestScript, _ bool, args []string) {
				serverOf(args[0]).Place = args[1]
			},
		},
	})
}

// idsUnder returns trace IDs of now, one per line, from nodes 40 to 47.
func idsUnder(ts *testscript.TestScript, file string, n int) (text string) {
	files, err := filepath.Glob(file)
	ts.Check(err)
	keyring, err := fleet.LoadKeyring(files[0])
	ts.Check(err)
	now := time.Now()
	for i := range uint32(n) {
		low, err := keyring.Codec().Encode(randflake.Parts{Time: now, Node: 40 + i%8, Sequence: i})
		ts.Check(err)
		id, err := traceid.New(now, 0, low)
		ts.Check(err)
		text += id.String() + "\n"
	}
	return text
}

// enter gives this process the directory and the environment of a script, until leave is called.
func enter(ts *testscript.TestScript) (leave func()) {
	var errs []error
	for _, name := range variables {
		if value := ts.Getenv(name); value != "" {
			errs = append(errs, os.Setenv(name, value))
		}
	}
	back, err := os.Getwd()
	ts.Check(errors.Join(append(errs, err, os.Chdir(ts.MkAbs(".")))...))
	return func() {
		errs := []error{os.Chdir(back)}
		for _, name := range variables {
			errs = append(errs, os.Unsetenv(name))
		}
		ts.Check(errors.Join(errs...))
	}
}

// sequential runs scripts one after another, since they change the state of this process.
type sequential struct{ *testing.T }

func (sequential) Parallel()     {}
func (sequential) Verbose() bool { return testing.Verbose() }

func (s sequential) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(sequential{t}) })
}
