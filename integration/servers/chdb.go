package servers

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// An engine runs statements in turn, on a connection of their own, and returns the result of the
// last one in a format. It is safe for concurrent use.
type engine func(format string, statements ...string) ([]byte, error)

// configVar names a configuration file of the engine.
const configVar = "TRACEFLAKETEST_CLICKHOUSE_CONFIG"

// loadChdb loads libchdb through its C interface (chdb.h).
func loadChdb(path, dir string) (engine, error) {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("servers: load ClickHouse: %w", err)
	}
	var (
		handleSignals func(enabled int32)
		connect       func(argc int32, argv unsafe.Pointer) (conn unsafe.Pointer)
		closeConn     func(conn unsafe.Pointer)
		query         func(conn unsafe.Pointer, sql string, sqlLen uintptr, format string,
			formatLen uintptr) (result unsafe.Pointer)
		buffer  func(result unsafe.Pointer) unsafe.Pointer
		length  func(result unsafe.Pointer) uintptr
		failure func(result unsafe.Pointer) string
		destroy func(result unsafe.Pointer)
	)
	for name, function := range map[string]any{
		"chdb_set_signal_handlers_enabled": &handleSignals, "chdb_connect": &connect,
		"chdb_close_conn": &closeConn, "chdb_query_n": &query, "chdb_result_buffer": &buffer,
		"chdb_result_length": &length, "chdb_result_error": &failure,
		"chdb_destroy_query_result": &destroy,
	} {
		purego.RegisterLibFunc(function, lib, name)
	}
	// Otherwise the library handles SIGSEGV and others for the whole process, and
	// Go needs them to turn a nil dereference into a panic.
	handleSignals(0)

	args := []*byte{cString("clickhouse"), cString("--path=" + dir)}
	// with a Keeper, for instance
	if config := os.Getenv(configVar); config != "" {
		args = append(args, cString("--config-file="+config))
	}
	open := func() (unsafe.Pointer, error) {
		conn := connect(int32(len(args)), unsafe.Pointer(&args[0]))
		runtime.KeepAlive(args)
		if conn == nil {
			return nil, fmt.Errorf("servers: ClickHouse does not start with data in %s: is it "+
				"writable, and not full?", dir)
		}
		return conn, nil
	}
	if _, err := open(); err != nil { // it keeps the engine running between statements
		return nil, err
	}
	return func(format string, statements ...string) (answer []byte, err error) {
		conn, err := open() // 0.2 ms
		if err != nil {
			return nil, err
		}
		defer closeConn(conn)
		for _, sql := range statements {
			result := query(*(*unsafe.Pointer)(conn), sql, uintptr(len(sql)), format,
				uintptr(len(format)))
			if result == nil {
				return nil, errors.New("the engine returned no result")
			}
			message := failure(result)
			answer = append([]byte(nil),
				unsafe.Slice((*byte)(buffer(result)), length(result))...)
			destroy(result)
			if message != "" {
				return nil, errors.New(repeatedCode.ReplaceAllString(message, "$1"))
			}
		}
		return answer, nil
	}, nil
}

// repeatedCode is the prefix that the library repeats in messages.
var repeatedCode = regexp.MustCompile(`^(Code: \d+\. DB::Exception: )+`)

func cString(s string) *byte {
	b := append([]byte(s), 0)
	return &b[0]
}
