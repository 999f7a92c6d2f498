package servers

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	ch "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// The engine writes the Native format as of revision 0. A client reads it as of the revision that
// it asked for: with a block header, and with one more byte a column from this revision on.
const revisionWithCustomSerialization = 54454

// recodeNative turns blocks of revision 0 into blocks of the client's revision.
func recodeNative(native []byte, revision uint64) ([]byte, error) {
	if revision == 0 || len(native) == 0 {
		return native, nil
	}
	reader := ch.NewReader(bytes.NewReader(native))
	out := ch.Buffer{Buf: make([]byte, 0, len(native)+64)}
	for {
		block := proto.NewBlock()
		switch err := block.Decode(reader, 0); {
		case errors.Is(err, io.EOF):
			return out.Buf, nil
		case err != nil:
			return nil, fmt.Errorf("the gateway cannot pass this result on in the Native format: %w", err)
		}
		if err := encodeBlock(&out, block, revision); err != nil {
			return nil, fmt.Errorf("the gateway cannot pass this result on in the Native format: %w", err)
		}
	}
}

func encodeBlock(out *ch.Buffer, block *proto.Block, revision uint64) error {
	if block.Rows() > 0 {
		return block.Encode(out, revision)
	}
	// clickhouse-go's Encode writes a column's state prefix also when there are
	// no rows, but its Decode, like ClickHouse, then expects none.
	if err := block.EncodeHeader(out, revision); err != nil {
		return err
	}
	for _, column := range block.Columns {
		out.PutString(column.Name())
		out.PutString(string(column.Type()))
		if revision >= revisionWithCustomSerialization {
			out.PutBool(false)
		}
	}
	return nil
}
