// The four functions of examples/provider in Go: a line of JSON in, a line of JSON out (docs/functions.md).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
)

type request struct {
	ID         int            `json:"id"`
	Function   string         `json:"function"`
	Settings   settings       `json:"settings"`
	Deployment deployment     `json:"deployment"`
	Schema     *schema        `json:"schema"`
	Object     map[string]any `json:"object"`
}

type settings struct {
	DefaultImages map[string]string `json:"defaultImages"`
}

type schema struct {
	APIVersion string `json:"apiVersion"`
}

type response struct {
	ID     int    `json:"id"`
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

func call(r request) (any, error) {
	switch r.Function {
	case "describe":
		return description(), nil
	case "supports":
		return problems(r), nil
	case "render":
		return render(r), nil
	case "observe":
		return observe(r), nil
	}
	return nil, fmt.Errorf("there is no function %s", r.Function)
}

func main() {
	// a request may have a whole CRD, which is longer than a Scanner reads
	input, output := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for {
		line, err := input.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			log.Fatal(err)
		}
		answer := response{ID: r.ID}
		result, err := call(r)
		if err != nil {
			answer.Error = err.Error()
		} else {
			answer.Result = result
		}
		// Encode ends the line.
		if err := output.Encode(answer); err != nil {
			log.Fatal(err)
		}
	}
}
