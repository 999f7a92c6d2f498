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

// chdb is the C interface of libchdb (chdb.h).
type chdb struct {
	dir string // of the data

	setSignalHandlersEnabled func(enabled int32)
	connect                  func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	closeConn                func(conn unsafe.Pointer)
	query                    func(conn unsafe.Pointer, sql string, sqlLen uintptr, format string,
		formatLen uintptr) unsafe.Pointer

	resultBuffer  func(result unsafe.Pointer) unsafe.Pointer
	resultLength  func(result unsafe.Pointer) uintptr
	resultError   func(result unsafe.Pointer) string
	destroyResult func(result unsafe.Pointer)
}

// configVar names a configuration file of the engine.
const configVar = "TRACEFLAKETEST_CLICKHOUSE_CONFIG"

func loadChdb(path, dir string) (*chdb, error) {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("servers: load ClickHouse: %w", err)
	}
	c := &chdb{dir: dir}
	for name, function := range map[string]any{
		"chdb_set_signal_handlers_enabled": &c.setSignalHandlersEnabled,
		"chdb_connect":                     &c.connect,
		"chdb_close_conn":                  &c.closeConn,
		"chdb_query_n":                     &c.query,
		"chdb_result_buffer":               &c.resultBuffer,
		"chdb_result_length":               &c.resultLength,
		"chdb_result_error":                &c.resultError,
		"chdb_destroy_query_result":        &c.destroyResult,
	} {
		symbol, err := purego.Dlsym(lib, name)
		if err != nil {
			return nil, fmt.Errorf("servers: load ClickHouse: %w", err)
		}
		purego.RegisterFunc(function, symbol)
	}
	// Otherwise the library handles SIGSEGV and others for the whole process, and
	// Go needs them to turn a nil dereference into a panic.
	c.setSignalHandlersEnabled(0)
	return c, nil
}

// chdbConnection is opened in 0.2 ms.
type chdbConnection struct {
	lib    *chdb
	handle unsafe.Pointer // chdb_connection *
}

func (c *chdb) open() (connection, error) {
	args := []*byte{cString("clickhouse"), cString("--path=" + c.dir)}
	// with a Keeper, for instance
	if config := os.Getenv(configVar); config != "" {
		args = append(args, cString("--config-file="+config))
	}
	handle := c.connect(int32(len(args)), unsafe.Pointer(&args[0]))
	runtime.KeepAlive(args)
	if handle == nil {
		return nil, fmt.Errorf(
			"servers: ClickHouse does not start with data in %s: is it writable, and not full?",
			c.dir)
	}
	return &chdbConnection{lib: c, handle: handle}, nil
}

func (c *chdbConnection) close() { c.lib.closeConn(c.handle) }

func (c *chdbConnection) query(sql, format string) ([]byte, error) {
	result := c.lib.query(*(*unsafe.Pointer)(c.handle), sql, uintptr(len(sql)), format,
		uintptr(len(format)))
	if result == nil {
		return nil, errors.New("the engine returned no result")
	}
	defer c.lib.destroyResult(result)
	if message := c.lib.resultError(result); message != "" {
		return nil, errors.New(repeatedCode.ReplaceAllString(message, "$1"))
	}
	return append([]byte(nil),
		unsafe.Slice((*byte)(c.lib.resultBuffer(result)), c.lib.resultLength(result))...), nil
}

// repeatedCode is the prefix that the library repeats in messages.
var repeatedCode = regexp.MustCompile(`^(Code: \d+\. DB::Exception: )+`)

func cString(s string) *byte {
	b := append([]byte(s), 0)
	return &b[0]
}
