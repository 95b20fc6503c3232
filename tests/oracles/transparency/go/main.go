// Judges trees, tiles, proofs and signed notes by golang.org/x/mod/sumdb. It reads one JSON object a
// line and answers each with one line: {"error": ""} where all is right, else with what is not.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Kind    string            `json:"kind"`
	Leaves  [][]byte          `json:"leaves"` // "tree": the data of the leaves
	Tiles   map[string][]byte `json:"tiles"`  // "tree": each tile's hashes, by its path
	Root    []byte            `json:"root"`
	Size    int64             `json:"size"`
	Index   int64             `json:"index"` // "inclusion"
	Leaf    []byte            `json:"leaf"`  // "inclusion": the data of the leaf
	Old     int64             `json:"old"`   // "consistency"
	OldRoot []byte            `json:"oldRoot"`
	Proof   [][]byte          `json:"proof"`
	Note    []byte            `json:"note"` // "head"
	Keys    []string          `json:"keys"`
	Signed  int               `json:"signed"` // "head": how many of the keys signed it
}

type hashes []tlog.Hash

func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(h)) {
			return nil, fmt.Errorf("there is no hash %d", index)
		}
		found[i] = h[index]
	}
	return found, nil
}

func hashOf(data []byte) (tlog.Hash, error) {
	var hash tlog.Hash
	if len(data) != len(hash) {
		return hash, fmt.Errorf("a hash has %d bytes, not %d", len(hash), len(data))
	}
	copy(hash[:], data)
	return hash, nil
}

func tree(q question) error {
	var stored hashes
	for i, data := range q.Leaves {
		more, err := tlog.StoredHashes(int64(i), data, stored)
		if err != nil {
			return err
		}
		stored = append(stored, more...)
	}
	size := int64(len(q.Leaves))
	root, err := tlog.TreeHash(size, stored)
	if err != nil {
		return err
	}
	if !bytes.Equal(root[:], q.Root) {
		return fmt.Errorf("the root is %x, not %x", root[:], q.Root)
	}
	tiles := tlog.NewTiles(8, 0, size)
	if len(tiles) != len(q.Tiles) {
		return fmt.Errorf("there are %d tiles, not %d", len(tiles), len(q.Tiles))
	}
	for _, tile := range tiles {
		data, err := tlog.ReadTileData(tile, stored)
		if err != nil {
			return err
		}
		// The path of a tile in Go's checksum database also has the height.
		path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
		if !bytes.Equal(data, q.Tiles[path]) {
			return fmt.Errorf("the tile %s differs", path)
		}
	}
	return nil
}

func inclusion(q question) error {
	root, err := hashOf(q.Root)
	if err != nil {
		return err
	}
	proof := make(tlog.RecordProof, len(q.Proof))
	for i, data := range q.Proof {
		if proof[i], err = hashOf(data); err != nil {
			return err
		}
	}
	return tlog.CheckRecord(proof, q.Size, root, q.Index, tlog.RecordHash(q.Leaf))
}

func consistency(q question) error {
	root, err := hashOf(q.Root)
	if err != nil {
		return err
	}
	old, err := hashOf(q.OldRoot)
	if err != nil {
		return err
	}
	proof := make(tlog.TreeProof, len(q.Proof))
	for i, data := range q.Proof {
		if proof[i], err = hashOf(data); err != nil {
			return err
		}
	}
	return tlog.CheckTree(proof, q.Size, root, q.Old, old)
}

func head(q question) error {
	var known []note.Verifier
	for _, key := range q.Keys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return err
		}
		known = append(known, verifier)
	}
	opened, err := note.Open(q.Note, note.VerifierList(known...))
	if err != nil {
		return err
	}
	if len(opened.Sigs) != q.Signed {
		return fmt.Errorf("%d keys signed, not %d", len(opened.Sigs), q.Signed)
	}
	lines := strings.Split(opened.Text, "\n")
	want := fmt.Sprint(q.Size) + " " + base64.StdEncoding.EncodeToString(q.Root)
	if len(lines) != 4 || lines[1]+" "+lines[2] != want {
		return fmt.Errorf("the text is %q", opened.Text)
	}
	return nil
}

func answer(line []byte) error {
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return err
	}
	switch q.Kind {
	case "tree":
		return tree(q)
	case "inclusion":
		return inclusion(q)
	case "consistency":
		return consistency(q)
	case "head":
		return head(q)
	}
	return fmt.Errorf("no such kind: %q", q.Kind)
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			said := ""
			if wrong := answer(line); wrong != nil {
				said = wrong.Error()
			}
			encoded, _ := json.Marshal(map[string]string{"error": said})
			out.Write(append(encoded, '\n'))
		}
		if err != nil {
			return
		}
	}
}
