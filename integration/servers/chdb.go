package servers

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// chdb is the C interface of libchdb (chdb.h). Strings are passed with their length,
// so they may contain any byte.
type chdb struct {
	setSignalHandlersEnabled func(enabled int32)
	connect                  func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	closeConn                func(conn unsafe.Pointer)
	queryParams              func(conn unsafe.Pointer, sql unsafe.Pointer, sqlLen uintptr, format unsafe.Pointer, formatLen uintptr,
		names, nameLens, values, valueLens unsafe.Pointer, n uintptr) unsafe.Pointer

	resultBuffer    func(result unsafe.Pointer) unsafe.Pointer
	resultLength    func(result unsafe.Pointer) uintptr
	resultError     func(result unsafe.Pointer) string
	resultElapsed   func(result unsafe.Pointer) float64
	resultRows      func(result unsafe.Pointer) uint64
	storageRows     func(result unsafe.Pointer) uint64
	storageBytes    func(result unsafe.Pointer) uint64
	resultRowsWrote func(result unsafe.Pointer) uint64
	resultByteWrote func(result unsafe.Pointer) uint64
	destroyResult   func(result unsafe.Pointer)
}

// loadChdb loads the library once a process; it is never unloaded.
var loadChdb = sync.OnceValues(func() (*chdb, error) {
	// npm calls the library libchdb.so on macOS too.
	path, err := engineFile("ClickHouse", "@chdb/*/libchdb.so", "TRACEFLAKE_CLICKHOUSE_DSN")
	if err != nil {
		return nil, err
	}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("servers: load ClickHouse: %w", err)
	}
	c := new(chdb)
	for name, function := range map[string]any{
		"chdb_set_signal_handlers_enabled": &c.setSignalHandlersEnabled,
		"chdb_connect":                     &c.connect,
		"chdb_close_conn":                  &c.closeConn,
		"chdb_query_with_params_n":         &c.queryParams,
		"chdb_result_buffer":               &c.resultBuffer,
		"chdb_result_length":               &c.resultLength,
		"chdb_result_error":                &c.resultError,
		"chdb_result_elapsed":              &c.resultElapsed,
		"chdb_result_rows_read":            &c.resultRows,
		"chdb_result_storage_rows_read":    &c.storageRows,
		"chdb_result_storage_bytes_read":   &c.storageBytes,
		"chdb_result_rows_written":         &c.resultRowsWrote,
		"chdb_result_bytes_written":        &c.resultByteWrote,
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
})

// param is a value for a placeholder {name:Type}, escaped as in TSV, which is
// also how HTTP clients send it.
type param struct{ name, value string }

// answer is a statement's result and its cost.
type answer struct {
	body                      []byte
	rows                      uint64 // in the result
	readRows, readBytes       uint64 // from storage
	writtenRows, writtenBytes uint64
	elapsed                   time.Duration
}

// connection runs one statement at a time; it is not safe for concurrent use.
type connection struct {
	lib    *chdb
	handle unsafe.Pointer // chdb_connection *
}

func (c *chdb) open(dir string) (*connection, error) {
	args := []*byte{cString("clickhouse"), cString("--path=" + dir)}
	if config := os.Getenv("TRACEFLAKE_CLICKHOUSE_CONFIG"); config != "" { // with a Keeper, for instance
		args = append(args, cString("--config-file="+config))
	}
	handle := c.connect(int32(len(args)), unsafe.Pointer(&args[0]))
	runtime.KeepAlive(args)
	if handle == nil {
		return nil, fmt.Errorf("servers: ClickHouse does not start with data in %s: is it writable, and not full?", dir)
	}
	return &connection{lib: c, handle: handle}, nil
}

func (c *connection) close() {
	c.lib.closeConn(c.handle)
}

func (c *connection) conn() unsafe.Pointer { return *(*unsafe.Pointer)(c.handle) }

func (c *connection) query(sql, format string, params []param) (answer, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	names, nameLens, values, valueLens := cParams(&pin, params)
	result := c.lib.queryParams(c.conn(), cBytes(&pin, sql), uintptr(len(sql)), cBytes(&pin, format), uintptr(len(format)),
		names, nameLens, values, valueLens, uintptr(len(params)))
	return c.lib.take(result)
}

// repeatedCode is the prefix that the library repeats in messages.
var repeatedCode = regexp.MustCompile(`^(Code: \d+\. DB::Exception: )+`)

// take copies a result into Go memory and frees it.
func (c *chdb) take(result unsafe.Pointer) (answer, error) {
	if result == nil {
		return answer{}, errors.New("the engine returned no result")
	}
	defer c.destroyResult(result)
	if message := c.resultError(result); message != "" {
		return answer{}, errors.New(repeatedCode.ReplaceAllString(message, "$1"))
	}
	a := answer{
		rows:         c.resultRows(result),
		readRows:     c.storageRows(result),
		readBytes:    c.storageBytes(result),
		writtenRows:  c.resultRowsWrote(result),
		writtenBytes: c.resultByteWrote(result),
		elapsed:      time.Duration(c.resultElapsed(result) * float64(time.Second)),
	}
	if n := c.resultLength(result); n > 0 {
		a.body = append([]byte(nil), unsafe.Slice((*byte)(c.resultBuffer(result)), n)...)
	}
	return a, nil
}

func cString(s string) *byte {
	b := append([]byte(s), 0)
	return &b[0]
}

func cBytes(pin *runtime.Pinner, s string) unsafe.Pointer {
	p := cString(s)
	pin.Pin(p)
	return unsafe.Pointer(p)
}

func cParams(pin *runtime.Pinner, params []param) (names, nameLens, values, valueLens unsafe.Pointer) {
	if len(params) == 0 {
		return nil, nil, nil, nil
	}
	var (
		n  = make([]unsafe.Pointer, len(params))
		nl = make([]uintptr, len(params))
		v  = make([]unsafe.Pointer, len(params))
		vl = make([]uintptr, len(params))
	)
	for i, p := range params {
		n[i], nl[i] = cBytes(pin, p.name), uintptr(len(p.name))
		v[i], vl[i] = cBytes(pin, p.value), uintptr(len(p.value))
	}
	pin.Pin(&n[0])
	pin.Pin(&nl[0])
	pin.Pin(&v[0])
	pin.Pin(&vl[0])
	return unsafe.Pointer(&n[0]), unsafe.Pointer(&nl[0]), unsafe.Pointer(&v[0]), unsafe.Pointer(&vl[0])
}
