// The four functions of examples/provider in JavaScript, for Node 18 or newer: a line of JSON in, a line of JSON out
// (docs/functions.md).

import {createInterface} from 'node:readline';

const NEEDED = ['model', 'servedName', 'image', 'replicas', 'gpus', 'flags', 'env'];
const NO_PLACE = [
  'engine.extraArgs',
  'resources.cpu',
  'resources.cpuLimit',
  'resources.memory',
  'podTemplate.metadata.labels',
  'podTemplate.metadata.annotations',
  'podTemplate.spec',
  'podTemplate.container',
  'model.storage.volumes',
  'model.storage.uri',
  'model.storage.offline',
  'secrets.huggingFaceToken',
  'nodeSelector',
  'tolerations',
];
const STATES = new Map([
  ['', ['Pending', 'Progressing']],
  ['Starting', ['Deploying', 'Progressing']],
  ['Serving', ['Running', 'DeploymentReady']],
  ['Broken', ['Failed', 'Failed']],
]);

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const text = (value) => (typeof value === 'string' ? value : '');
const count = (value) => (Number.isInteger(value) && value >= 0 && value <= 2147483647 ? value : 0);
const at = (value, path) => path.split('.').reduce((part, key) => (isObject(part) ? part[key] : undefined), value);
const hasValue = (value) => (typeof value === 'object' ? Object.values(value ?? {}).some(hasValue) : value !== undefined);
// A flag is false by default. A false inside a part of a pod is a value.
const isSet = (value) => value !== false && hasValue(value);
const image = ({deployment: {spec}, settings}) => spec.image ?? settings.defaultImages[spec.engine.type] ?? null;

function describe() {
  return {
    protocol: 1,
    contract: '0.3',
    name: 'widgets',
    title: 'Widgets',
    version: '0.1.0',
    documentation: 'https://example.com/widgets',
    capabilities: {engines: ['vllm'], servingModes: ['aggregated'], cpuSupport: false, gpuSupport: true},
    upstream: {group: 'example.com', plural: 'widgets', kind: 'Widget'},
    fields: {v1: {needed: NEEDED.map((name) => `spec.${name}`)}},
    selectionRules: [
      {condition: "metadata.namespace.startsWith('edge-')", priority: 200, reason: 'edge → widgets'},
    ],
  };
}

/** Returns a sentence for every unsupported field, so that no field is dropped silently. */
function supports(request) {
  const {spec} = request.deployment;
  const problems = [];
  if (!image(request)) problems.push(`Widgets has no default image for ${spec.engine.type}: set image`);
  const gpu = at(spec, 'resources.gpu.type') ?? 'nvidia.com/gpu';
  if (gpu !== 'nvidia.com/gpu') {
    problems.push(`Widgets has no place for resources.gpu.type ${gpu}: only nvidia.com/gpu`);
  }
  const set = NO_PLACE.filter((field) => isSet(at(spec, field)));
  return problems.concat(set.map((field) => `Widgets has no place for ${field}: remove it`));
}

/** Returns the Widget. The process adds namespace, owner and KubeFoundry's labels. */
function render(request) {
  const {deployment, schema} = request;
  const {spec} = deployment;
  const flags = {...spec.engine.args};
  if (spec.engine.contextLength !== undefined) flags['max-model-len'] = String(spec.engine.contextLength);
  if (spec.engine.trustRemoteCode) flags['trust-remote-code'] = 'true';
  const content = {
    model: spec.model.id,
    servedName: deployment.servedName ?? undefined,
    image: image(request),
    replicas: spec.scaling.replicas,
    gpus: deployment.gpuCount,
    flags,
    env: spec.env,
  };
  const metadata = {name: deployment.name};
  return {main: {apiVersion: schema.apiVersion, kind: 'Widget', metadata, spec: content}, image: image(request)};
}

/** Returns the Widget's status in KubeFoundry's terms. An unknown state is `Unknown`, never an error. */
function observe({deployment, object}) {
  const status = isObject(object.status) ? object.status : {};
  const {replicas} = deployment.spec.scaling;
  const state = text(status.state);
  const ready = count(status.ready);
  let [phase, reason] = STATES.get(state) ?? ['Deploying', 'Unknown'];
  if (replicas === 0 && ready === 0) [phase, reason] = ['Pending', 'ScaledToZero'];
  else if (phase === 'Running' && ready === 0) [phase, reason] = ['Deploying', 'Progressing'];
  return {
    phase,
    reason,
    message: text(status.message) || `Widget is ${state || 'not taken up yet'}`,
    replicas: {desired: replicas, ready, available: ready},
    endpoint: {service: deployment.name, port: 8000, model: deployment.servedName ?? ''},
  };
}

const FUNCTIONS = {describe, supports, render, observe};

for await (const line of createInterface({input: process.stdin, crlfDelay: Infinity})) {
  const request = JSON.parse(line);
  let response;
  try {
    response = {id: request.id, result: FUNCTIONS[request.function](request)};
  } catch (error) {
    console.error(error);
    response = {id: request.id, error: `${error.name}: ${error.message}`};
  }
  process.stdout.write(`${JSON.stringify(response)}\n`);
}
