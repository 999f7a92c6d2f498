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

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// variables are the environment variables of the command and the scripts.
var variables = []string{"TRACEFLAKE_STORE", "TRACEFLAKE_SECRET_FILE", "TRACEFLAKE_SECRET",
	"TRACEFLAKE_TTL",
	clickhouseVar, "TRACEFLAKE_STROE"}

// TestScripts runs the scripts in testdata. Each one is a session of an operator: files, commands,
// and what they print. Besides testscript's own commands they use
//
//	traceflake ARGS… [<FILE]     it must succeed without a word on stderr
//	code N traceflake ARGS…      it must end with this exit code
//	refuses ARGS… TEXT           it must print nothing but an error with the text, and end with 2
//	save NAME [LINE]             sets a variable to the first word of a line of the output
//	ids FILE N                   prints N trace IDs of now under the first key of a file
//	move STORE [SECRETS]         gives the server of a store another place, and with secrets
//	                             begins a history there, as a process does
//	acquire STORE [OFFSET]       prints the history in which a process has acquired a lease
//	clock OFFSET                 moves the clock of the operator's machine
//	exec sh SCRIPT               runs a script that may call the program traceflake
//
// A store test:NAME is on a server of the script's own. Commands run in this process.
func TestScripts(t *testing.T) {
	defer func() { now = time.Now }()
	docs, err := filepath.Abs("../../../docs")
	self, selfErr := os.Executable()
	bin := t.TempDir()
	if err = errors.Join(err, selfErr, os.Symlink(self, bin+"/traceflake")); err != nil {
		t.Fatal(err)
	}
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
			now = time.Now
			files, err := filepath.Glob(e.WorkDir + "/*")
			for _, file := range files {
				err = errors.Join(err, os.Chmod(file, 0o700)) // some are secrets
			}
			e.Setenv("DOCS", docs)
			e.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			e.Setenv(asCommand, "yes")
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
				check := func(err error) { ts.Check(err) }
				fmt.Fprint(ts.Stdout(), idsUnder(check, ts.MkAbs(args[0]), n))
			},
			"save": func(ts *testscript.TestScript, _ bool, args []string) {
				line, err := strconv.Atoi(slices.Concat(args, []string{"1"})[1])
				ts.Check(err)
				words := strings.Fields(lines(ts.ReadFile("stdout"))[line-1])
				ts.Setenv(args[0], words[0])
			},
			"acquire": func(ts *testscript.TestScript, _ bool, args []string) {
				defer enter(ts)()
				ahead, _ := time.ParseDuration(slices.Concat(args, []string{"0s"})[1])
				fmt.Fprintln(ts.Stdout(), acquired(t, args[0], ahead))
			},
			"clock": func(ts *testscript.TestScript, _ bool, args []string) {
				ahead, err := time.ParseDuration(args[0])
				ts.Check(err)
				now = func() time.Time { return time.Now().Add(ahead) }
			},
			"move": func(ts *testscript.TestScript, _ bool, args []string) {
				serverOf(args[0]).Move()
				if len(args) > 1 {
					defer enter(ts)()
					secrets, err := fleet.LoadKeyring(args[1])
					ts.Check(err)
					_, err = opened(t, args[0]).Begin(t.Context(), lease.BeginRequest{
						Reason: lease.Moved, Now: time.Now(), Secrets: secrets})
					ts.Check(err)
				}
			},
		},
	})
}

// idsUnder returns trace IDs of now, one per line, from nodes 40 to 47.
func idsUnder(check func(error), file string, n int) (text string) {
	files, err := filepath.Glob(file)
	check(err)
	keyring, err := fleet.LoadKeyring(files[0])
	check(err)
	now := time.Now()
	for i := range uint32(n) {
		low, err := keyring.Codec().Encode(randflake.Parts{Time: now, Node: 40 + i%8, Sequence: i})
		check(err)
		id, err := traceid.New(now, 0, low)
		check(err)
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
