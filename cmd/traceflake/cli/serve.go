package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// serve runs the servers until the command is interrupted or one of them fails.
func serve(cmd *cobra.Command, grace time.Duration, servers ...*http.Server) error {
	const (
		readHeaderLimit = 10 * time.Second
		idleLimit       = 2 * time.Minute // of a client's connection
	)
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	for _, s := range servers {
		s.ReadHeaderTimeout, s.IdleTimeout = readHeaderLimit, idleLimit
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
		listener, err := net.Listen("tcp", s.Addr)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "listening on http://%s\n", listener.Addr())
		go func() { cancel(s.Serve(listener)) }()
	}
	<-ctx.Done()
	served, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	var errs []error
	for _, s := range servers {
		err := s.Shutdown(served)
		if errors.Is(err, context.DeadlineExceeded) {
			err = s.Close()
		}
		errs = append(errs, err)
	}
	if cmd.Context().Err() == nil {
		errs = append(errs, context.Cause(ctx))
	}
	return errors.Join(errs...)
}
