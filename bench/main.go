package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
)

// settings are how long and how much.
type settings struct {
	rounds int
	turn   time.Duration
	idle   time.Duration
	rows   int    // of a B-tree
	ids    int    // for the balance
	calls  int    // of each thread that are stepped through
	call   string // which
}

// fewest are the rounds that RESULTS.md may be of: benchstat asks for as many.
const fewest = 10

// args are the settings as flags, for a child.
func (s settings) args(more ...string) []string {
	return append(more, "-rounds", strconv.Itoa(s.rounds), "-turn", s.turn.String(), "-idle", s.idle.String(), "-call", s.call)
}

// validate refuses settings that make no sense, or no results to be written.
func (s settings) validate(writes bool) error {
	if s.rounds < 1 || s.turn <= 0 || s.rows < 1 || s.ids < 1 || s.calls < 1 {
		return errors.New("rounds, turn, rows, ids and calls must be positive")
	}
	if writes && s.rounds < fewest {
		return fmt.Errorf("%d rounds: RESULTS.md is of at least %d; -only prints sections of fewer", s.rounds, fewest)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 25, "turns of each subject")
	flag.DurationVar(&s.turn, "turn", 40*time.Millisecond, "length of a turn")
	flag.DurationVar(&s.idle, "idle", 10*time.Second, "how long an idle process is watched")
	flag.IntVar(&s.rows, "rows", 1_000_000, "rows inserted into PostgreSQL, for each kind of key")
	flag.IntVar(&s.ids, "ids", 1<<22, "IDs for the balance of shards")
	flag.IntVar(&s.calls, "calls", 256, "calls stepped through, instruction by instruction")
	only := flag.String("only", "", "print these sections and write nothing: "+strings.Join(sectionNames(), ","))
	checking := flag.Bool("check", false, "hold the table of ratios against its targets, with short runs")
	child := flag.String("child", "", "for itself: what to do as a process of its own")
	flag.StringVar(&s.call, "call", "", "for itself: what to call while it is stepped through")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if err := s.validate(*only == "" && *child == "" && !*checking); err != nil {
		return err
	}
	// What OpenTelemetry has to say is about a measurement gone wrong.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(os.Stderr, "bench: opentelemetry:", err) }))

	switch {
	case *child != "":
		job, ok := children[*child]
		if !ok {
			return fmt.Errorf("no child %q", *child)
		}
		return job(ctx, s)
	case *checking:
		set := make(map[string]bool)
		flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
		if !set["rounds"] {
			s.rounds = 11
		}
		if !set["turn"] {
			s.turn = 10 * time.Millisecond
		}
		if !set["idle"] {
			s.idle = 2 * time.Second
		}
		return checkTargets(ctx, s)
	case *only != "":
		names := strings.Split(*only, ",")
		for _, name := range names {
			if !slices.Contains(sectionNames(), name) {
				return fmt.Errorf("no section %q, only %s", name, strings.Join(sectionNames(), ", "))
			}
		}
		r, err := gather(ctx, s, names)
		if err != nil {
			return err
		}
		text, err := r.markdown(ctx)
		fmt.Print(text)
		return err
	}
	r, err := gather(ctx, s, sectionNames())
	if err != nil {
		return err
	}
	return r.save(ctx)
}

func checkTargets(ctx context.Context, s settings) error {
	m, err := measureIDs(ctx, s, false)
	if err != nil {
		return err
	}
	ls, err := lines(m)
	if err != nil {
		return err
	}
	q, err := measureQuiet(ctx, s)
	if err != nil {
		return err
	}
	return check(append(ls, q.lines()...))
}
