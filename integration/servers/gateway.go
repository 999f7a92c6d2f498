package servers

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	ch "github.com/ClickHouse/ch-go/proto"
)

// gateway answers ClickHouse's HTTP interface from a few connections to the engine.
type gateway struct {
	password string
	dir      string // for rows to be inserted
	idle     chan *connection
}

// Parameters of the HTTP interface that are not settings of the query.
var notSettings = []string{
	"query", "database", "default_format", "client_protocol_version", "query_id", "quota_key", "user", "password",
	"compress", "decompress", "stacktrace", "buffer_size", "wait_end_of_query",
	// A statement here always ends before its answer begins.
	"async_insert", "wait_for_async_insert",
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/ping" || r.Method == http.MethodGet && r.URL.RawQuery == "" {
		_, _ = io.WriteString(w, "Ok.\n")
		return
	}
	w.Header().Set("X-ClickHouse-Query-Id", rand.Text())
	q, err := g.parse(r)
	if err != nil {
		fail(w, err)
		return
	}
	a, err := g.run(r.Context(), q)
	if q.spooled != "" {
		_ = os.Remove(q.spooled) // if not, then with the folder
	}
	if err != nil {
		fail(w, err)
		return
	}
	if err := q.encode(&a); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("X-ClickHouse-Format", q.format)
	w.Header().Set("X-ClickHouse-Summary", fmt.Sprintf(
		`{"read_rows":"%d","read_bytes":"%d","written_rows":"%d","written_bytes":"%d","result_rows":"%d","elapsed_ns":"%d"}`,
		a.readRows, a.readBytes, a.writtenRows, a.writtenBytes, a.rows, a.elapsed.Nanoseconds()))
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	_, _ = w.Write(a.body) // if the client is gone, nothing is left to do
}

// request is one statement and its settings.
type request struct {
	sql      string
	format   string // of the result
	spooled  string // the file that sql reads rows from, if any
	database string
	role     string
	settings []string // name, value, name, value …
	params   []param
	revision uint64 // of the Native format that the client reads
	compress bool
}

func (g *gateway) parse(r *http.Request) (*request, error) {
	in := r.URL.Query()
	if !g.authenticated(r, in) {
		return nil, refuse(codeAuthentication, "AUTHENTICATION_FAILED", "the user or the password is wrong")
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, notImplemented("external tables")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" {
		return nil, notImplemented("Content-Encoding " + encoding + ": use LZ4, ZSTD or no compression")
	}

	q := &request{database: "default", compress: in.Get("compress") == "1"}
	if name := in.Get("database"); name != "" {
		q.database = name
	}
	q.revision, _ = strconv.ParseUint(in.Get("client_protocol_version"), 10, 32)
	for _, name := range slices.Sorted(maps.Keys(in)) {
		value := in.Get(name)
		switch after, isParam := strings.CutPrefix(name, "param_"); {
		case isParam:
			q.params = append(q.params, param{after, value})
		case strings.HasPrefix(name, "session_"):
			return nil, notImplemented("sessions")
		case name == "role":
			q.role = value
		case !slices.Contains(notSettings, name):
			q.settings = append(q.settings, name, value)
		}
	}

	body := io.Reader(r.Body)
	if in.Get("decompress") == "1" {
		body = frames{compress.NewReader(body)}
	}
	q.sql = in.Get("query")
	if statement, format, ok := splitInsert(q.sql); ok {
		path, err := g.spool(body)
		q.spooled = path
		q.sql = statement + " FROM INFILE " + quoteText(path) + " COMPRESSION 'none' FORMAT " + format
		return q, err
	}
	rest, err := io.ReadAll(body)
	if err != nil {
		return nil, refuse(codeNetworkError, "NETWORK_ERROR", "read the request: "+err.Error())
	}
	if q.sql != "" && len(rest) > 0 {
		q.sql += "\n"
	}
	q.sql += string(rest)
	if keyword(q.sql) == "SET" {
		return nil, notImplemented("SET, which would end with the request: give settings as URL parameters or in the statement")
	}
	format := in.Get("default_format")
	if format == "" {
		format = "TabSeparated"
	}
	q.format = outputFormat(q.sql, format)
	return q, nil
}

// authenticated checks the random password: ClickHouse reads any file that the
// process may read, which other users of this machine must not.
func (g *gateway) authenticated(r *http.Request, in url.Values) bool {
	password := in.Get("password")
	if key := r.Header.Get("X-ClickHouse-Key"); key != "" {
		password = key
	}
	if _, basic, ok := r.BasicAuth(); ok {
		password = basic
	}
	return subtle.ConstantTimeCompare([]byte(password), []byte(g.password)) == 1
}

// run waits for a connection, sets it up, runs the statement and puts it back.
func (g *gateway) run(ctx context.Context, q *request) (answer, error) {
	var conn *connection
	select {
	case conn = <-g.idle:
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	defer func() { g.idle <- conn.reset(g.dir, q.settings) }()

	// Always, as the last statement may have been USE.
	if _, err := conn.query("USE "+quoteName(q.database), "Null", nil); err != nil {
		return answer{}, err
	}
	if q.role != "" {
		defer func() { _, _ = conn.query("SET ROLE DEFAULT", "Null", nil) }()
		if _, err := conn.query("SET ROLE "+quoteName(q.role), "Null", nil); err != nil {
			return answer{}, err
		}
	}
	for i := 0; i < len(q.settings); i += 2 {
		if _, err := conn.query("SET "+quoteName(q.settings[i])+" = "+quoteText(q.settings[i+1]), "Null", nil); err != nil {
			return answer{}, err
		}
	}
	return conn.query(q.sql, q.format, q.params)
}

// reset resets a request's settings, or returns another connection if this one may
// change no setting any more. A name that the engine refused needs no reset.
func (c *connection) reset(dir string, settings []string) *connection {
	for i := 0; i < len(settings); i += 2 {
		if settings[i] == "readonly" {
			if fresh, err := c.lib.open(dir); err == nil {
				c.close()
				return fresh
			}
		}
		_, _ = c.query("SET "+quoteName(settings[i])+" = DEFAULT", "Null", nil)
	}
	return c
}

// spool writes the rows of an INSERT into a file for the engine to read, so
// that a client that is slow or disconnects occupies no connection and stores
// nothing. libchdb has a streaming INSERT, but it leaves state of an ended thread
// behind.
func (g *gateway) spool(rows io.Reader) (path string, err error) {
	file, err := os.CreateTemp(g.dir, "insert-")
	if err == nil {
		_, err = io.Copy(file, rows)
		if err = errors.Join(err, file.Close()); err == nil {
			return file.Name(), nil
		}
		_ = os.Remove(file.Name())
	}
	var disk *os.PathError
	if errors.As(err, &disk) {
		return "", refuse(codeNotEnoughSpace, "NOT_ENOUGH_SPACE", err.Error())
	}
	return "", refuse(codeNetworkError, "NETWORK_ERROR", "read the rows: "+err.Error())
}

// encode encodes the result in the format that the client requested.
func (q *request) encode(a *answer) (err error) {
	if strings.EqualFold(q.format, "Native") {
		if a.body, err = recodeNative(a.body, q.revision); err != nil {
			return err
		}
	}
	if q.compress && len(a.body) > 0 {
		a.body, err = compressBlocks(a.body)
	}
	return err
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

func quoteName(s string) string { return "`" + escape(s, '`') + "`" }
func quoteText(s string) string { return "'" + escape(s, '\'') + "'" }

func escape(s string, quote rune) string {
	return strings.NewReplacer(`\`, `\\`, string(quote), `\`+string(quote)).Replace(s)
}
