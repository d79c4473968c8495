import Foundation
import Testing

@testable import InletDashboard

/// What is shipped for Prometheus and Grafana, and what the README says, against the metrics that there are.
@Suite struct ShippedMetricsTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// Every name of a series in a query, and the names that it must be one of.
    private static func unknown(in query: String) -> [String] {
        let histograms = Metric.allCases.filter { $0.kind == .histogram }
        let parts = histograms.flatMap { metric in ["_bucket", "_sum", "_count"].map { metric.rawValue + $0 } }
        let others = Metric.allCases.filter { $0.kind != .histogram }.map(\.rawValue)
        let known = Set(parts + others)
        return query.matches(of: /\b(?:inlet|process)_[a-z_]+/).map { String($0.0) }.filter { !known.contains($0) }
    }

    /// All texts under these keys, however deep.
    private static func texts(_ keys: Set<String>, in value: Any) -> [String] {
        if let list = value as? [Any] { return list.flatMap { texts(keys, in: $0) } }
        guard let object = value as? [String: Any] else { return [] }
        return object.flatMap { key, value -> [String] in
            if keys.contains(key), let text = value as? String { return [text] }
            return texts(keys, in: value)
        }
    }

    @Test func `the Grafana dashboard asks for nothing that there is not, and for everything that there is`() throws {
        let json = try JSONSerialization.jsonObject(with: Data(Self.text("packaging/grafana/inlet.json").utf8))
        let queries = Self.texts(["expr", "query", "definition"], in: json)
        #expect(queries.count > 40)
        for query in queries { #expect(Self.unknown(in: query) == [], "\(query)") }
        let all = queries.joined(separator: " ")
        for metric in Metric.allCases { #expect(all.contains(metric.rawValue), "\(metric.rawValue) is not shown") }
    }

    @Test func `every query of the dashboard goes to the data source that was chosen`() throws {
        let text = try Self.text("packaging/grafana/inlet.json")
        let sources = Set(text.matches(of: /"uid": "([^"]*)"/).map { String($0.1) })
        #expect(sources == ["${datasource}", "inlet"])
    }

    @Test func `the alerts ask for nothing that there is not`() throws {
        let lines = try Self.text("packaging/prometheus/alerts.yml").split(separator: "\n")
            .filter { $0.contains("expr:") }
        #expect(lines.count == 10)
        for line in lines { #expect(Self.unknown(in: String(line)) == [], "\(line)") }
    }

    @Test func `README lists every metric, in order, with its labels and its meaning`() throws {
        let table = try Self.text("README.md").split(separator: "\n").drop { $0 != "## Metrics" }.dropFirst()
            .prefix { !$0.hasPrefix("## ") }
        let rows = table.filter { $0.hasPrefix("| `") }.map(String.init)
        #expect(rows == Metric.allCases.map(Self.row))
    }

    static func row(_ metric: Metric) -> String {
        let labels = metric.labels.map { "`\($0)`" }.joined(separator: " ")
        return "| `\(metric.rawValue)` | \(metric.kind.rawValue) | \(labels) | \(metric.help) |"
    }

    @Test(.enabled(if: Promtool.isThere, "needs promtool, of Debian's package prometheus"))
    func `promtool takes the alerts, and they fire when they should`() throws {
        let folder = Self.root.appendingPathComponent("packaging/prometheus")
        let rules = try Promtool.run(["check", "rules", folder.appendingPathComponent("alerts.yml").path], input: nil)
        #expect(rules.code == 0, "\(rules.said)")
        let tests = folder.appendingPathComponent("alerts_test.yml").path
        let ends = try Promtool.run(["test", "rules", tests], input: nil)
        #expect(ends.code == 0, "\(ends.said)")
    }
}
