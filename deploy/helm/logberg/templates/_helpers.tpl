{{- define "logberg.name" -}}
{{- printf "%s-logberg" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "logberg.selector" -}}
app.kubernetes.io/name: logberg
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "logberg.labels" -}}
{{ include "logberg.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "logberg.host" -}}
{{- $name := include "logberg.name" .root -}}
{{- printf "%s-%d.%s-nodes.%s.svc.%s" $name (int .index) $name .root.Release.Namespace .root.Values.clusterDomain -}}
{{- end -}}
