package servers

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	ch "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// gateway answers ClickHouse's HTTP interface, with a connection to the engine for each statement.
type gateway struct {
	password string
	engine   engine
	dir      string // for files
}

// engine is a ClickHouse in this process or below it.
type engine interface{ open() (connection, error) }

// connection runs one statement at a time; it is not safe for concurrent use.
type connection interface {
	query(sql, format string) ([]byte, error)
	close()
}

// serveClickHouse runs the server in the child process.
func serveClickHouse(path, dir, address, password string) error {
	engine, err := loadEngine(path, dir)
	if err != nil {
		return err
	}
	open, err := engine.open() // keeps the engine running between statements
	if err != nil {
		return err
	}
	defer open.close()
	return http.ListenAndServe(address, &gateway{password, engine, dir})
}

func loadEngine(path, dir string) (engine, error) {
	if program := os.Getenv(pythonVar); program != "" {
		return startPython(program, dir)
	}
	return loadChdb(path, dir)
}

// Parameters of the HTTP interface that are not settings of the query.
var notSettings = []string{
	"query", "database", "default_format", "client_protocol_version", "query_id", "role",
	"compress", "decompress", "wait_end_of_query",
	// A statement here always ends before its answer begins.
	"async_insert", "wait_for_async_insert",
}

var (
	ownFormat = regexp.MustCompile(`(?is)\bFORMAT\s+(\w+)\s*(?:SETTINGS\s+[^']*)?;?\s*$`)
	errorCode = regexp.MustCompile(`^Code: (\d+)\.`)
)

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	result, err := g.answer(r)
	if err == nil {
		_, _ = w.Write(result) // if the client is gone, nothing is left to do
		return
	}
	// Like ClickHouse's own errors: clients read the code, not the status.
	if !errorCode.MatchString(err.Error()) {
		//nolint:staticcheck // the text is ClickHouse's
		err = fmt.Errorf("Code: 1002. DB::Exception: the gateway: %w. (UNKNOWN_EXCEPTION)", err)
	}
	w.Header().Set("X-ClickHouse-Exception-Code", errorCode.FindStringSubmatch(err.Error())[1])
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// answer runs a request's statement and returns its result in the format that the client requested.
func (g *gateway) answer(r *http.Request) ([]byte, error) {
	if !g.authenticated(r) {
		//nolint:staticcheck // the text is ClickHouse's
		return nil, errors.New("Code: 516. DB::Exception: the user or the password is wrong. " +
			"(AUTHENTICATION_FAILED)")
	}
	in, body := r.URL.Query(), io.Reader(r.Body)
	if in.Get("decompress") == "1" {
		body = frames{compress.NewReader(body)}
	}
	rest, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	sql := in.Get("query")
	switch {
	case sql == "":
		sql = string(rest)
	case len(rest) > 0: // the rows of an INSERT
		rows, err := g.file(rest)
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.Remove(rows) }()
		sql = ownFormat.ReplaceAllString(sql,
			" FROM INFILE "+quoteText(rows)+" COMPRESSION 'none' $0")
	}
	format := cmp.Or(in.Get("default_format"), "TabSeparated")
	if m := ownFormat.FindStringSubmatch(sql); m != nil {
		format = m[1]
	}
	result, err := g.run(sql, format, in)
	if err == nil && strings.EqualFold(format, "Native") {
		revision, _ := strconv.ParseUint(in.Get("client_protocol_version"), 10, 32)
		result, err = recodeNative(result, revision)
	}
	if err == nil && in.Get("compress") == "1" {
		result, err = compressBlocks(result)
	}
	return result, err
}

// file writes rows to a file: in the text of a statement the engine would end them at an empty
// line.
func (g *gateway) file(rows []byte) (string, error) {
	f, err := os.CreateTemp(g.dir, "rows-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(rows)
	return f.Name(), errors.Join(err, f.Close())
}

// authenticated checks the random password: ClickHouse reads any file that the
// process may read, which other users of this machine must not.
func (g *gateway) authenticated(r *http.Request) bool {
	_, password, _ := r.BasicAuth()
	password = cmp.Or(r.Header.Get("X-ClickHouse-Key"), password)
	return subtle.ConstantTimeCompare([]byte(password), []byte(g.password)) == 1
}

// run runs a statement with the database, the role, the settings and the parameters of a request:
// SET sets a parameter too, if its name begins with param_.
func (g *gateway) run(sql, format string, in url.Values) ([]byte, error) {
	conn, err := g.engine.open()
	if err != nil {
		return nil, err
	}
	defer conn.close()
	first := []string{"USE " + quoteName(cmp.Or(in.Get("database"), "default"))}
	if role := in.Get("role"); role != "" {
		first = append(first, "SET ROLE "+quoteName(role))
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(notSettings, name) {
			first = append(first, "SET "+quoteName(name)+" = "+quoteText(in.Get(name)))
		}
	}
	for _, statement := range first {
		if _, err := conn.query(statement, "Null"); err != nil {
			return nil, err
		}
	}
	return conn.query(sql, format)
}

// frames reads ClickHouse's compressed frames. The reader below it wraps io.EOF.
type frames struct{ *compress.Reader }

func (f frames) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.EOF
	}
	return n, err
}

// compressBlocks writes ClickHouse's compressed frames.
func compressBlocks(data []byte) ([]byte, error) {
	const frame = 1 << 20
	var out ch.Buffer
	w := compress.NewWriter(compress.LevelZero, compress.LZ4)
	for chunk := range slices.Chunk(data, frame) {
		if err := w.Compress(chunk); err != nil {
			return nil, err
		}
		out.Buf = append(out.Buf, w.Data...)
	}
	return out.Buf, nil
}

// recodeNative turns blocks of revision 0, in which the engine writes the Native format, into
// blocks of the client's revision. It leaves out blocks without rows: clickhouse-go's Encode writes
// a column's state prefix also for them, but its Decode, like ClickHouse, then expects none.
func recodeNative(native []byte, revision uint64) ([]byte, error) {
	if revision == 0 || len(native) == 0 {
		return native, nil
	}
	reader := ch.NewReader(bytes.NewReader(native))
	out := ch.Buffer{Buf: make([]byte, 0, len(native)+64)}
	for {
		block := proto.NewBlock()
		err := block.Decode(reader, 0)
		if errors.Is(err, io.EOF) {
			return out.Buf, nil
		}
		if err == nil && block.Rows() > 0 {
			err = block.Encode(&out, revision)
		}
		if err != nil {
			return nil, fmt.Errorf(
				"the gateway cannot pass this result on in the Native format: %w", err)
		}
	}
}

func quoteName(s string) string { return "`" + escape(s, '`') + "`" }
func quoteText(s string) string { return "'" + escape(s, '\'') + "'" }

func escape(s string, quote rune) string {
	return strings.NewReplacer(`\`, `\\`, string(quote), `\`+string(quote)).Replace(s)
}
