package servers

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
)

// pythonVar names a Python with the package chdb-core, whose ClickHouse then serves the tests in
// place of npm's: PyPI has older and newer versions.
const pythonVar = "TRACEFLAKETEST_CLICKHOUSE_PYTHON"

//go:embed python_engine.py
var pythonEngine string

// startPython starts a ClickHouse inside Python, which ends with this process.
func startPython(program, data string) (engine, error) {
	if config := os.Getenv(configVar); config != "" {
		data += "?config-file=" + config
	}
	cmd := exec.Command(program, "-c", pythonEngine, data)
	cmd.Stderr = os.Stderr
	_, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, err
	}
	var address string
	if _, err := fmt.Fscan(out, &address); err != nil {
		return nil, fmt.Errorf("servers: start ClickHouse in Python: %w", err)
	}
	go func() { _ = cmd.Wait() }() // until then its standard input stays open
	return func(format string, statements ...string) ([]byte, error) {
		response, err := http.PostForm(address,
			url.Values{"format": {format}, "statement": statements})
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = errors.New(repeatedCode.ReplaceAllString(string(body), "$1"))
		}
		return body, err
	}, nil
}
