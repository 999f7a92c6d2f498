package servers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	ch "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// gateway answers ClickHouse's HTTP interface.
type gateway struct {
	password string
	engine   engine
	dir      string // for files
}

// serveClickHouse runs the server in the child process.
func serveClickHouse(path, dir, address, password string) (err error) {
	g := &gateway{password: password, dir: dir}
	if program := os.Getenv(pythonVar); program != "" {
		g.engine, err = startPython(program, filepath.Join(dir, "data"))
	} else {
		g.engine, err = loadChdb(path, dir)
	}
	if err != nil {
		return err
	}
	return http.ListenAndServe(address, g)
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
	// Clients read the code, not the status.
	if code := errorCode.FindStringSubmatch(err.Error()); code != nil {
		w.Header().Set("X-ClickHouse-Exception-Code", code[1])
	}
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// answer runs a request's statement and returns its result in the format that the client requested.
func (g *gateway) answer(r *http.Request) ([]byte, error) {
	// ClickHouse reads any file that the process may read, which other users of this machine must
	// not.
	_, password, _ := r.BasicAuth()
	if cmp.Or(r.Header.Get("X-ClickHouse-Key"), password) != g.password {
		//nolint:staticcheck // the text is ClickHouse's
		return nil, errors.New("Code: 516. DB::Exception: the user or the password is wrong. " +
			"(AUTHENTICATION_FAILED)")
	}
	in, body := r.URL.Query(), io.Reader(r.Body)
	if in.Get("decompress") == "1" {
		body = compress.NewReader(body) // which wraps io.EOF
	}
	rest, err := io.ReadAll(body)
	if err != nil && !errors.Is(err, io.EOF) {
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
			" FROM INFILE "+quote(rows, "'")+" COMPRESSION 'none' $0")
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
	if err == nil && in.Get("compress") == "1" && len(result) > 0 {
		frame := compress.NewWriter(compress.LevelZero, compress.LZ4)
		err = frame.Compress(result)
		result = frame.Data
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

// run runs a statement with the database, the role, the settings and the parameters of a request:
// SET sets a parameter too, if its name begins with param_.
func (g *gateway) run(sql, format string, in url.Values) ([]byte, error) {
	all := []string{"USE " + quote(cmp.Or(in.Get("database"), "default"), "`")}
	if role := in.Get("role"); role != "" {
		all = append(all, "SET ROLE "+quote(role, "`"))
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(notSettings, name) {
			all = append(all, "SET "+quote(name, "`")+" = "+quote(in.Get(name), "'"))
		}
	}
	return g.engine(format, append(all, sql)...)
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

func quote(s, mark string) string {
	return mark + strings.NewReplacer(`\`, `\\`, mark, `\`+mark).Replace(s) + mark
}
