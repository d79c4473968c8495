import Foundation
import InletCore
import InletPipelines
import Testing

/// A request and the answer that a VOPI server of one generation gave to it, as it was captured. Files of such vectors in
/// `Tests/Fixtures/VOPI` are all replayed.
struct VOPIVector: Sendable, CustomTestStringConvertible {
    var name: String
    var generation: VOPIGeneration
    var method: String
    /// With its query.
    var target: String
    var headers: [String: String]
    var body: VOPIValue
    var status: Int
    var answerHeaders: [(String, String)]
    /// Empty for an answer without a body.
    var answer: String
    /// What our client makes of it; nil for a vector that nobody has judged.
    var concluded: String?
    /// Whether our client puts the very same request on the wire, rather than one that the server takes better.
    var isAsWeSendIt: Bool

    var testDescription: String { "\(generation.rawValue): \(name)" }

    var path: String { String(target.prefix { $0 != "?" }) }

    /// The last value of a query item; nil without one.
    func query(_ name: String) -> String? {
        let items = target.drop { $0 != "?" }.dropFirst().split(separator: "&")
        return items.last { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
    }

    init?(_ value: VOPIValue, _ generation: VOPIGeneration) {
        let (request, response) = (value["request"], value["response"])
        guard let name = value["name"].text, let method = request["method"].text, let target = request["path"].text,
            let status = response["status"].integer
        else { return nil }
        self.name = name
        self.generation = generation
        self.method = method
        self.target = target
        headers = request["headers"].members.compactMapValues(\.text)
        body = request["body"]
        self.status = status
        answerHeaders = response["headers"].members.compactMapValues(\.text).map { ($0.key, $0.value) }
        answer = response["body"] == .null ? "" : response["body"].plain.text
        concluded = value["concluded"].text
        isAsWeSendIt = value["asWeSendIt"].boolean ?? false
    }

    /// By the server's commit, where the file does not say it for all of its vectors.
    private static func generation(_ value: VOPIValue) -> VOPIGeneration {
        value["server_commit"].text == "e8baab9" ? .older : .newer
    }

    static let all: [VOPIVector] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Fixtures/VOPI")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.sorted().flatMap { name in
            let file = (try? Data(contentsOf: folder.appendingPathComponent(name))) ?? Data()
            let value = VOPIValue(Array(file)) ?? .null
            let common = value["generation"].text.flatMap { VOPIGeneration(rawValue: $0) }
            return value["vectors"].list.compactMap { VOPIVector($0, common ?? generation($0)) }
        }
    }()
}
