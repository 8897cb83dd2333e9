{{- define "kubefoundry-crds.annotations" -}}
{{- if .Values.keep }}
helm.sh/resource-policy: keep
{{- end }}
{{- with .Values.annotations }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}
