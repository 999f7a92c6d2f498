package pgstore

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// answering starts a server that answers each request for a session with an error of this code. If
// it is "", the server accepts the session, which is read-only. It returns a URL.
func answering(t *testing.T, code, message string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	session := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		b := pgproto3.NewBackend(conn, conn)
		for {
			request, err := b.ReceiveStartupMessage()
			if err != nil {
				return
			}
			if _, tls := request.(*pgproto3.SSLRequest); !tls {
				break
			}
			if _, err := conn.Write([]byte("N")); err != nil {
				return
			}
		}
		if code != "" {
			b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: message})
			_ = b.Flush()
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		for b.Flush() == nil {
			if _, err := b.Receive(); err != nil {
				return
			}
			b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{
				{Name: []byte("transaction_read_only"), DataTypeOID: 25}}})
			b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("on")}})
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SHOW")})
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go session(conn)
		}
	}()
	return "postgres://app:hunter2@" + listener.Addr().String() + "/db"
}

func readOf(t *testing.T, url string) error {
	t.Helper()
	config, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	o, err := newObjects(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = o.Read(ctx, "config")
	return err
}

// A server replays each recorded answer.
func TestAnswers(t *testing.T) {
	calls.Answers(t, answers, func(row driver.Answer, message string) error {
		return readOf(t, answering(t, row.Code, message))
	})
	for _, mode := range []string{"?", "?sslmode=disable&"} {
		err := readOf(t, answering(t, "", "")+mode+"target_session_attrs=read-write")
		if lease.Fix(err) != driver.CommonFix("PRIMARY") || lease.Permanent(err) ||
			strings.Contains(err.Error(), "TLS") {
			t.Errorf("a standby: %v, fix %q", err, lease.Fix(err))
		}
	}
}
