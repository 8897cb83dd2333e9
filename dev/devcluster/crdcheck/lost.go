package main

import (
	"encoding/json"
	"fmt"
	"sort"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func isEmpty(document []byte) (bool, error) {
	var any interface{}
	err := yaml.Unmarshal(document, &any)
	return any == nil, err
}

// lostFields names what is in the document and not in the decoded object.
// Strict decoding does not look below "items" and "additionalProperties", whose
// types decode themselves: a field too new for this version would vanish there
// without a word, as it would on the server.
func lostFields(document []byte, crd *v1.CustomResourceDefinition) ([]string, error) {
	var written, kept interface{}
	if err := yaml.Unmarshal(document, &written); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(crd)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &kept); err != nil {
		return nil, err
	}
	var paths []string
	compare("", written, kept, &paths)
	sort.Strings(paths)
	return paths, nil
}

func compare(path string, written, kept interface{}, lost *[]string) {
	switch w := written.(type) {
	case map[string]interface{}:
		k, _ := kept.(map[string]interface{})
		for name, value := range w {
			below := path + "." + name
			if path == "" {
				below = name
			}
			other, ok := k[name]
			if !ok {
				if !isZero(value) {
					*lost = append(*lost, below)
				}
				continue
			}
			compare(below, value, other, lost)
		}
	case []interface{}:
		k, _ := kept.([]interface{})
		for i, value := range w {
			if i < len(k) {
				compare(fmt.Sprintf("%s[%d]", path, i), value, k[i], lost)
			}
		}
	}
}

// isZero: such values are left out of what is written back, and mean the same.
func isZero(value interface{}) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case float64:
		return v == 0
	case map[string]interface{}:
		return len(v) == 0
	case []interface{}:
		return len(v) == 0
	}
	return false
}
