internal import InletCore

/// Metrics in the text format that Prometheus reads (exposition format 0.0.4): families in the order of `Metric`, series in the
/// order of their labels, so that two pages differ only in what has changed.
struct PrometheusText {
    /// Names and values, in the order in which they are written.
    typealias Labels = [(name: String, value: String)]

    enum Number: Sendable, Equatable {
        case whole(Int64)
        case real(Double)
        case histogram(Histogram)
    }

    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private var series: [Metric: [(labels: Labels, number: Number)]] = [:]

    /// Adds one series of a metric. No two have the same labels.
    mutating func add(_ metric: Metric, _ number: Number, _ labels: Labels = []) {
        series[metric, default: []].append((labels, number))
    }

    mutating func add(_ metric: Metric, _ number: Int, _ labels: Labels = []) {
        add(metric, .whole(Int64(number)), labels)
    }

    mutating func add(_ metric: Metric, _ flag: Bool, _ labels: Labels = []) {
        add(metric, .whole(flag ? 1 : 0), labels)
    }

    /// The page; metrics without a series are left out.
    var text: String {
        var text = ""
        for metric in Metric.allCases {
            guard let series = series[metric] else { continue }
            let name = metric.rawValue
            text +=
                "# HELP \(name) \(Self.escape(metric.help, quotes: false))\n# TYPE \(name) \(metric.kind.rawValue)\n"
            let sorted = series.sorted { left, right in
                left.labels.map(\.value).lexicographicallyPrecedes(right.labels.map(\.value))
            }
            for (labels, number) in sorted { Self.append(name, labels, number, to: &text) }
        }
        return text
    }

    private static func append(_ name: String, _ labels: Labels, _ number: Number, to text: inout String) {
        switch number {
        case .whole(let value): text += "\(name)\(format(labels)) \(value)\n"
        case .real(let value): text += "\(name)\(format(labels)) \(format(value))\n"
        case .histogram(let histogram):
            for (bound, count) in histogram.atMost {
                text += "\(name)_bucket\(format(labels + [("le", format(bound))])) \(count)\n"
            }
            text += "\(name)_bucket\(format(labels + [("le", "+Inf")])) \(histogram.count)\n"
            text += "\(name)_sum\(format(labels)) \(format(histogram.sum))\n"
            text += "\(name)_count\(format(labels)) \(histogram.count)\n"
        }
    }

    private static func format(_ labels: Labels) -> String {
        if labels.isEmpty { return "" }
        return "{" + labels.map { "\($0.name)=\"\(escape($0.value, quotes: true))\"" }.joined(separator: ",") + "}"
    }

    /// As Go's ParseFloat reads it, which knows other words than Swift for what is no number.
    static func format(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if let whole = Int64(exactly: value) { return String(whole) }
        return value.description
    }

    /// - Parameter quotes: whether quotation marks end the text, as they do that of a label.
    static func escape(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}
