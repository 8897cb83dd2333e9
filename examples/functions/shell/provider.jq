# The four functions of examples/provider in jq. Each input is a request, each output its response.

def text: if type == "string" then . else "" end;
def count: if type == "number" and . >= 0 and . <= 2147483647 and . == floor then . else 0 end;

def description: {
  protocol: 1,
  contract: "0.3",
  name: "widgets",
  title: "Widgets",
  version: "0.1.0",
  documentation: "https://example.com/widgets",
  capabilities: {engines: ["vllm"], servingModes: ["aggregated"], cpuSupport: false, gpuSupport: true},
  upstream: {group: "example.com", plural: "widgets", kind: "Widget"},
  fields: {v1: {needed: ["model", "servedName", "image", "replicas", "gpus", "flags", "env"] | map("spec." + .)}},
  selectionRules: [
    {condition: "metadata.namespace.startsWith('edge-')", priority: 200, reason: "edge → widgets"}
  ]
};

def image: .deployment.spec.image // .settings.defaultImages[.deployment.spec.engine.type];

# A sentence for every field that a Widget has no place for, so that no field is dropped silently.
def problems:
  .deployment.spec as $spec
  | ["engine.extraArgs", "resources.cpu", "resources.cpuLimit", "resources.memory", "podTemplate.metadata.labels", "podTemplate.metadata.annotations",
     "podTemplate.spec", "podTemplate.container", "model.storage.volumes", "model.storage.uri", "model.storage.offline",
     "secrets.huggingFaceToken", "nodeSelector", "tolerations"] as $refused
  | [ (select(image == null) | "Widgets has no default image for \($spec.engine.type): set image"),
      ($spec.resources.gpu.type // "nvidia.com/gpu" | select(. != "nvidia.com/gpu")
        | "Widgets has no place for resources.gpu.type \(.): only nvidia.com/gpu"),
      ($refused[] | . as $field | select($spec | getpath($field / ".") | . != false and [.. | scalars | values] != [])
        | "Widgets has no place for \(.): remove it") ];

def rendered:
  .deployment.spec as $spec
  | {
      main: {
        apiVersion: .schema.apiVersion,
        kind: "Widget",
        metadata: {name: .deployment.name},
        spec: ({
          model: $spec.model.id,
          servedName: .deployment.servedName,
          image: image,
          replicas: $spec.scaling.replicas,
          gpus: .deployment.gpuCount,
          flags: ($spec.engine.args
            + (if $spec.engine.contextLength then {"max-model-len": ($spec.engine.contextLength | tostring)} else {} end)
            + (if $spec.engine.trustRemoteCode then {"trust-remote-code": "true"} else {} end)),
          env: $spec.env
        } | with_entries(select(.value != null)))
      },
      image: image
    };

# The status comes from others: any value may be missing, or of another type.
def observed:
  (.object.status | if type == "object" then . else {} end) as $status
  | ($status.state | text) as $state
  | ($status.ready | count) as $ready
  | .deployment.spec.scaling.replicas as $replicas
  | ({"": ["Pending", "Progressing"], Starting: ["Deploying", "Progressing"],
      Serving: ["Running", "DeploymentReady"], Broken: ["Failed", "Failed"]}[$state]
     // ["Deploying", "Unknown"]) as [$phase, $reason]
  | (if $replicas == 0 and $ready == 0 then ["Pending", "ScaledToZero"]
     elif $phase == "Running" and $ready == 0 then ["Deploying", "Progressing"]
     else [$phase, $reason] end) as [$phase, $reason]
  | {
      phase: $phase,
      reason: $reason,
      message: ($status.message | text
        | if . == "" then "Widget is \(if $state == "" then "not taken up yet" else $state end)" else . end),
      replicas: {desired: $replicas, ready: $ready, available: $ready},
      endpoint: {service: .deployment.name, port: 8000, model: (.deployment.servedName // "")}
    };

{id} + (
    if .function == "describe" then {result: description}
    elif .function == "supports" then {result: problems}
    elif .function == "render" then {result: rendered}
    elif .function == "observe" then {result: observed}
    else {error: "there is no function \(.function)"} end
  )
