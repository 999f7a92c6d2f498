package pgstore

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/driver"
)

// refusing starts a server that answers each request for a session with an error. It returns a URL.
func refusing(t *testing.T, code, message string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			b := pgproto3.NewBackend(conn, conn)
			request, err := b.ReceiveStartupMessage()
			if _, tls := request.(*pgproto3.SSLRequest); tls {
				if _, err = conn.Write([]byte("N")); err == nil {
					_, err = b.ReceiveStartupMessage()
				}
			}
			if err == nil {
				b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: message})
				_ = b.Flush()
			}
			_ = conn.Close()
		}
	}()
	return "postgres://app:hunter2@" + listener.Addr().String() + "/db"
}

// A server replays each recorded answer.
func TestAnswers(t *testing.T) {
	calls.Answers(t, answers, func(row driver.Answer, message string) error {
		_, err := calls.Objects(t, refusing(t, row.Code, message)).Read(t.Context(), "config")
		return err
	})
}
