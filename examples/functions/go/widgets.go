package main

import (
	"fmt"
	"math"
	"strconv"
)

// object is a JSON object.
type object = map[string]any

// deployment has the parts of a ModelDeployment that a Widget has a place for, and those that it refuses.
type deployment struct {
	Name       string  `json:"name"`
	ServedName *string `json:"servedName"`
	GPUCount   int     `json:"gpuCount"`
	Spec       spec    `json:"spec"`
}

type spec struct {
	Model struct {
		ID      *string `json:"id"`
		Storage struct {
			Volumes []object `json:"volumes"`
			URI     string   `json:"uri"`
			Offline bool     `json:"offline"`
		} `json:"storage"`
	} `json:"model"`
	Engine struct {
		Type            string            `json:"type"`
		Args            map[string]string `json:"args"`
		ExtraArgs       []string          `json:"extraArgs"`
		ContextLength   *int              `json:"contextLength"`
		TrustRemoteCode bool              `json:"trustRemoteCode"`
	} `json:"engine"`
	Scaling struct {
		Replicas int `json:"replicas"`
	} `json:"scaling"`
	Resources struct {
		GPU *struct {
			Type string `json:"type"`
		} `json:"gpu"`
		CPU      any `json:"cpu"`
		CPULimit any `json:"cpuLimit"`
		Memory   any `json:"memory"`
	} `json:"resources"`
	Image       string `json:"image"`
	Env         []any  `json:"env"`
	PodTemplate struct {
		Metadata struct {
			Labels      object `json:"labels"`
			Annotations object `json:"annotations"`
		} `json:"metadata"`
		Spec      object `json:"spec"`
		Container object `json:"container"`
	} `json:"podTemplate"`
	Secrets struct {
		HuggingFaceToken string `json:"huggingFaceToken"`
	} `json:"secrets"`
	NodeSelector object `json:"nodeSelector"`
	Tolerations  []any  `json:"tolerations"`
}

func description() object {
	needed := []string{}
	for _, name := range []string{"model", "servedName", "image", "replicas", "gpus", "flags", "env"} {
		needed = append(needed, "spec."+name)
	}
	return object{
		"protocol":      1,
		"contract":      "0.3",
		"name":          "widgets",
		"title":         "Widgets",
		"version":       "0.1.0",
		"documentation": "https://example.com/widgets",
		"capabilities": object{
			"engines":      []string{"vllm"},
			"servingModes": []string{"aggregated"},
			"cpuSupport":   false,
			"gpuSupport":   true,
		},
		"upstream": object{"group": "example.com", "plural": "widgets", "kind": "Widget"},
		"fields":   object{"v1": object{"needed": needed}},
		"selectionRules": []object{
			{"condition": "metadata.namespace.startsWith('edge-')", "priority": 200, "reason": "edge → widgets"},
		},
	}
}

func image(r request) string {
	if r.Deployment.Spec.Image != "" {
		return r.Deployment.Spec.Image
	}
	return r.Settings.DefaultImages[r.Deployment.Spec.Engine.Type]
}

// isSet reports whether a part of the spec has a value at any depth: unset lists and maps are there, and empty.
func isSet(value any) bool {
	switch part := value.(type) {
	case nil:
		return false
	case object:
		for _, child := range part {
			if isSet(child) {
				return true
			}
		}
		return false
	case []any:
		return len(part) > 0
	}
	return true
}

// problems returns a sentence for every unsupported field, so that no field is dropped silently.
func problems(r request) []string {
	spec, found := r.Deployment.Spec, []string{}
	if image(r) == "" {
		found = append(found, fmt.Sprintf("Widgets has no default image for %s: set image", spec.Engine.Type))
	}
	if gpu := spec.Resources.GPU; gpu != nil && gpu.Type != "nvidia.com/gpu" {
		found = append(found,
			fmt.Sprintf("Widgets has no place for resources.gpu.type %s: only nvidia.com/gpu", gpu.Type))
	}
	for _, field := range []struct {
		path  string
		isSet bool
	}{
		{"engine.extraArgs", len(spec.Engine.ExtraArgs) > 0},
		{"resources.cpu", spec.Resources.CPU != nil},
		{"resources.cpuLimit", spec.Resources.CPULimit != nil},
		{"resources.memory", spec.Resources.Memory != nil},
		{"podTemplate.metadata.labels", len(spec.PodTemplate.Metadata.Labels) > 0},
		{"podTemplate.metadata.annotations", len(spec.PodTemplate.Metadata.Annotations) > 0},
		{"podTemplate.spec", isSet(spec.PodTemplate.Spec)},
		{"podTemplate.container", isSet(spec.PodTemplate.Container)},
		{"model.storage.volumes", len(spec.Model.Storage.Volumes) > 0},
		{"model.storage.uri", spec.Model.Storage.URI != ""},
		{"model.storage.offline", spec.Model.Storage.Offline},
		{"secrets.huggingFaceToken", spec.Secrets.HuggingFaceToken != ""},
		{"nodeSelector", len(spec.NodeSelector) > 0},
		{"tolerations", len(spec.Tolerations) > 0},
	} {
		if field.isSet {
			found = append(found, fmt.Sprintf("Widgets has no place for %s: remove it", field.path))
		}
	}
	return found
}

// render returns the Widget. The process adds namespace, owner and KubeFoundry's labels.
func render(r request) object {
	spec, flags := r.Deployment.Spec, map[string]string{}
	for name, value := range spec.Engine.Args {
		flags[name] = value
	}
	if length := spec.Engine.ContextLength; length != nil {
		flags["max-model-len"] = strconv.Itoa(*length)
	}
	if spec.Engine.TrustRemoteCode {
		flags["trust-remote-code"] = "true"
	}
	content := object{
		"image":    image(r),
		"replicas": spec.Scaling.Replicas,
		"gpus":     r.Deployment.GPUCount,
		"flags":    flags,
		"env":      spec.Env,
	}
	if spec.Model.ID != nil {
		content["model"] = *spec.Model.ID
	}
	if r.Deployment.ServedName != nil {
		content["servedName"] = *r.Deployment.ServedName
	}
	return object{
		"main": object{
			"apiVersion": r.Schema.APIVersion,
			"kind":       "Widget",
			"metadata":   object{"name": r.Deployment.Name},
			"spec":       content,
		},
		"image": image(r),
	}
}

// observe returns the Widget's status in KubeFoundry's terms. An unknown state is Unknown, never an error.
func observe(r request) object {
	status, _ := r.Object["status"].(object)
	state, _ := status["state"].(string)
	message, _ := status["message"].(string)
	ready, replicas := count(status["ready"]), r.Deployment.Spec.Scaling.Replicas
	phase, reason := "Deploying", "Unknown"
	switch state {
	case "":
		phase, reason = "Pending", "Progressing"
	case "Starting":
		reason = "Progressing"
	case "Serving":
		phase, reason = "Running", "DeploymentReady"
	case "Broken":
		phase, reason = "Failed", "Failed"
	}
	if replicas == 0 && ready == 0 {
		phase, reason = "Pending", "ScaledToZero"
	} else if phase == "Running" && ready == 0 {
		phase, reason = "Deploying", "Progressing"
	}
	if message == "" && state == "" {
		message = "Widget is not taken up yet"
	} else if message == "" {
		message = "Widget is " + state
	}
	return object{
		"phase":    phase,
		"reason":   reason,
		"message":  message,
		"replicas": object{"desired": replicas, "ready": ready, "available": ready},
		"endpoint": object{"service": r.Deployment.Name, "port": 8000},
	}
}

// count returns a number of replicas, 0 for any other value.
func count(value any) int {
	number, ok := value.(float64)
	if !ok || number != math.Trunc(number) || number < 0 || number > math.MaxInt32 {
		return 0
	}
	return int(number)
}
