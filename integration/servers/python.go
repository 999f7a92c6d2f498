package servers

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// pythonVar names a Python with the package chdb-core, whose ClickHouse then serves the tests in
// place of npm's: PyPI has older and newer versions.
const pythonVar = "TRACEFLAKETEST_CLICKHOUSE_PYTHON"

//go:embed python_engine.py
var pythonEngine string

// python is the ClickHouse inside a running Python.
type python struct{ socket string }

func startPython(program, dir string) (*python, error) {
	p := &python{filepath.Join(dir, "python")}
	data := filepath.Join(dir, "data")
	if config := os.Getenv(configVar); config != "" {
		data += "?config-file=" + config
	}
	cmd := exec.Command(program, "-c", pythonEngine, data, p.socket)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe() // which ends with this process
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("servers: start ClickHouse in Python: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		c, err := p.open()
		if err == nil {
			c.close()
			return p, nil
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("servers: ClickHouse in Python ended: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *python) open() (connection, error) {
	c, err := net.Dial("unix", p.socket)
	if err != nil {
		return nil, err
	}
	return pythonConnection{c}, nil
}

type pythonConnection struct{ net.Conn }

func (c pythonConnection) close() { _ = c.Close() }

func (c pythonConnection) query(sql, format string) ([]byte, error) {
	var request []byte
	for _, text := range []string{format, sql} {
		request = append(binary.BigEndian.AppendUint64(request, uint64(len(text))), text...)
	}
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	var size [8]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	response := make([]byte, binary.BigEndian.Uint64(size[:]))
	if _, err := io.ReadFull(c, response); err != nil {
		return nil, err
	}
	if response[0] == '!' {
		return nil, errors.New(repeatedCode.ReplaceAllString(string(response[1:]), "$1"))
	}
	return response[1:], nil
}
