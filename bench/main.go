package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/bench/idle"
	"github.com/traceflake/traceflake/bench/internal/child"
)

func main() {
	child.Main(idle.Jobs())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	check := flags.Bool("check", false, "check the targets; fail if one is missed")
	quick := flags.Bool("short", false, "measure little, and only print it")
	only := flags.String("only", "", "print these sections: "+strings.Join(sectionNames(), ","))
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	names := sectionNames()
	if *only != "" {
		names = strings.Split(*only, ",")
		for _, name := range names {
			if !slices.Contains(sectionNames(), name) {
				return fmt.Errorf("no section %q, only %s", name, strings.Join(sectionNames(), ", "))
			}
		}
	}
	if *check && (*quick || *only != "") {
		return errors.New("-check measures everything that has a target and takes neither -short nor -only")
	}
	// OpenTelemetry reports only failed measurements here.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(os.Stderr, "bench: opentelemetry:", err) }))
	if *check {
		f, err := measureTargets(ctx, os.Stderr, checked)
		if err != nil {
			return err
		}
		ls := lines(f)
		fmt.Print(table(ls))
		return judgement(ls)
	}
	p := full
	if *quick {
		p = short
	}
	r, err := gather(ctx, p, names)
	if err != nil {
		return err
	}
	if *quick || *only != "" {
		fmt.Print(r.markdown())
		return nil
	}
	return r.save()
}
