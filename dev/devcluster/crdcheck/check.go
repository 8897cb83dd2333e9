package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

type result struct {
	name     string
	problems []error
}

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
}()

var strict = serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme,
	serializer.SerializerOptions{Yaml: true, Strict: true})

// checkFile checks every document of one YAML file. An error means that the
// file as a whole cannot be judged.
func checkFile(raw []byte) ([]result, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	var results []result
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if empty, err := isEmpty(document); err != nil {
			return nil, err
		} else if empty {
			continue
		}
		r, err := checkDocument(document)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	if len(results) == 0 {
		return nil, errors.New("no CustomResourceDefinition in it")
	}
	return results, nil
}

func checkDocument(document []byte) (result, error) {
	object, kind, err := strict.Decode(document, nil, nil)
	strictError := err
	if err != nil && !runtime.IsStrictDecodingError(err) {
		return result{}, err
	}
	crd, ok := object.(*v1.CustomResourceDefinition)
	if !ok {
		return result{}, fmt.Errorf("%s is not a CustomResourceDefinition of apiextensions.k8s.io/v1", kind)
	}
	r := result{name: crd.Name}
	if strictError != nil {
		r.problems = append(r.problems, strictError)
	}
	lost, err := lostFields(document, crd)
	if err != nil {
		return r, err
	}
	for _, field := range lost {
		if strictError != nil && strings.Contains(strictError.Error(), strconv.Quote(field)) {
			continue // told already
		}
		r.problems = append(r.problems, fmt.Errorf("%s: this version does not know it and would drop it", field))
	}

	scheme.Default(crd)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(crd, internal, nil); err != nil {
		return r, err
	}
	prepareForCreate(internal)
	for _, problem := range validation.ValidateCustomResourceDefinition(context.Background(), internal) {
		r.problems = append(r.problems, problem)
	}
	return r, nil
}

// prepareForCreate does what the API server does before it validates a new
// definition: the status is its own, and names the version that is stored.
func prepareForCreate(crd *apiextensions.CustomResourceDefinition) {
	crd.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
		}
	}
}
