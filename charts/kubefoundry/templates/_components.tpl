{{- /* The image of a component: list CONTEXT NAME OVERRIDES. A digest takes precedence over a tag. */ -}}
{{- define "kubefoundry.image" -}}
{{- $context := index . 0 -}}
{{- $own := index . 2 -}}
{{- $image := printf "%s/%s" (trimSuffix "/" ($context.Values.image.mirror | default $context.Values.image.registry)) (index . 1) -}}
{{- if $own.digest -}}
{{ printf "%s@%s" $image $own.digest }}
{{- else -}}
{{ printf "%s:%s" $image ($own.tag | default $context.Values.image.tag | default $context.Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- /* Fields of each pod's spec that depend on the cluster. */ -}}
{{- define "kubefoundry.scheduling" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The Secret with the certificate of the webhooks, if core does not create it itself. */ -}}
{{- define "kubefoundry.certificate" -}}
{{- $certificate := .Values.core.certificate -}}
{{- if and $certificate.secretName (ne $certificate.source "secret") -}}
{{- fail (printf "core.certificate.secretName has no effect with source %s: set core.certificate.source to secret, or remove secretName" $certificate.source) -}}
{{- end -}}
{{- if and $certificate.issuer.name (ne $certificate.source "cert-manager") -}}
{{- fail (printf "core.certificate.issuer.name has no effect with source %s: set core.certificate.source to cert-manager, or remove issuer.name" $certificate.source) -}}
{{- end -}}
{{- if eq $certificate.source "secret" -}}
{{ required "core.certificate.source is secret: set core.certificate.secretName" $certificate.secretName }}
{{- else if eq $certificate.source "cert-manager" -}}
kubefoundry-core-certificate
{{- end -}}
{{- end -}}

{{- /* A map as KEY=VALUE,KEY=VALUE. */ -}}
{{- define "kubefoundry.pairs" -}}
{{- $pairs := list -}}
{{- range $key, $value := . -}}
{{- $pairs = append $pairs (printf "%s=%s" $key $value) -}}
{{- end -}}
{{ join "," $pairs }}
{{- end -}}

{{- /*
Refuse a component that another release has: list CONTEXT CLUSTERROLE. Helm would refuse it too, by the first object in
the way. Without a cluster (`helm template`, Argo CD) nothing is found and nothing is refused.
*/ -}}
{{- define "kubefoundry.unique" -}}
{{- $context := index . 0 -}}
{{- $name := index . 1 -}}
{{- $found := lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" $name -}}
{{- $annotations := dig "metadata" "annotations" dict $found -}}
{{- $release := get $annotations "meta.helm.sh/release-name" -}}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" -}}
{{- if and $release (ne (printf "%s/%s" $namespace $release) (printf "%s/%s" $context.Release.Namespace $context.Release.Name)) -}}
{{- fail (printf "%s belongs to release %s in namespace %s, and a cluster has one: upgrade that release (helm upgrade %s -n %s), or uninstall it first" $name $release $namespace $release $namespace) -}}
{{- end -}}
{{- end -}}
