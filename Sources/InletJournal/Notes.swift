internal import Foundation
package import InletCore
internal import Synchronization

/// The one encoding of structured columns; keys are sorted so that equal values have equal bytes.
enum JournalJSON {
    static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }

    /// nil for what is empty.
    static func note(_ value: some Encodable & Collection) throws -> [UInt8]? {
        value.isEmpty ? nil : try encode(value)
    }

    static func decode<Value: Decodable>(_ bytes: [UInt8]) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(bytes))
    }
}

/// The few policies that a configuration has, and their encodings: every file has one of them, and reading and writing JSON takes
/// longer than all else about a row.
final class PolicyNotes: Sendable {
    static let shared = PolicyNotes()
    /// More than routes have; beyond it, what is remembered is forgotten.
    private static let mostKept = 512

    private let policies = Mutex<[[UInt8]: FilePolicy]>([:])
    private let notes = Mutex<[FilePolicy: [UInt8]]>([:])

    func note(_ policy: FilePolicy) throws -> [UInt8] {
        if let known = notes.withLock({ $0[policy] }) { return known }
        let note = try JournalJSON.encode(policy)
        notes.withLock { notes in
            if notes.count >= Self.mostKept { notes = [:] }
            notes[policy] = note
        }
        return note
    }

    func policy(_ data: [UInt8]) throws -> FilePolicy {
        if let known = policies.withLock({ $0[data] }) { return known }
        let policy: FilePolicy = try JournalJSON.decode(data)
        policies.withLock { policies in
            if policies.count >= Self.mostKept { policies = [:] }
            policies[data] = policy
        }
        return policy
    }
}

/// What is done with a file after its deliveries, frozen at admission with the rest of the plan.
package struct FilePolicy: Sendable, Hashable, Codable {
    package var onSuccess: Route.OnSuccess
    package var onFailure: Route.OnFailure
    package var retry: RetryPolicy
    package var receipts = ReceiptPlace.none
    package var dedupe = DuplicateRule.off
    package var manifest: ManifestRule?
    package var window: DeliveryWindow?
    /// The labels that its sidecar gave it, by name: those of its unit do not replace them.
    package var ownLabels: Set<String> = []

    package init(onSuccess: Route.OnSuccess, onFailure: Route.OnFailure, retry: RetryPolicy) {
        self.onSuccess = onSuccess
        self.onFailure = onFailure
        self.retry = retry
    }
}

/// Policies of earlier versions lack what came later; what is not asked for is not written.
extension FilePolicy {
    private enum CodingKeys: String, CodingKey {
        case onSuccess, onFailure, retry, receipts, dedupe, manifest, window
        case ownLabels = "own_labels"
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            onSuccess: try values.decode(Route.OnSuccess.self, forKey: .onSuccess),
            onFailure: try values.decode(Route.OnFailure.self, forKey: .onFailure),
            retry: try values.decode(RetryPolicy.self, forKey: .retry))
        receipts = try values.decodeIfPresent(ReceiptPlace.self, forKey: .receipts) ?? .none
        dedupe = try values.decodeIfPresent(DuplicateRule.self, forKey: .dedupe) ?? .off
        manifest = try values.decodeIfPresent(ManifestRule.self, forKey: .manifest)
        window = try values.decodeIfPresent(DeliveryWindow.self, forKey: .window)
        ownLabels = try values.decodeIfPresent(Set<String>.self, forKey: .ownLabels) ?? []
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(onSuccess, forKey: .onSuccess)
        try values.encode(onFailure, forKey: .onFailure)
        try values.encode(retry, forKey: .retry)
        if receipts != .none { try values.encode(receipts, forKey: .receipts) }
        if dedupe != .off { try values.encode(dedupe, forKey: .dedupe) }
        try values.encodeIfPresent(manifest, forKey: .manifest)
        try values.encodeIfPresent(window, forKey: .window)
        if !ownLabels.isEmpty { try values.encode(ownLabels.sorted(), forKey: .ownLabels) }
    }
}

extension Proof {
    /// What the journal keeps of it: the JSON that `Codable` reads, written without an encoder, because every delivery has one.
    var note: [UInt8] {
        var object = JSONLine()
        object.add("key", key)
        object.add("method", method.rawValue)
        object.add("size", size)
        if let content { object.add("content", content.object) }
        if let etag { object.add("etag", etag) }
        if let url { object.add("url", url) }
        if let address { object.add("address", address) }
        if let details { object.add("details", JSONLine(details)) }
        if let keepsakes { object.add("keepsakes", JSONLine(keepsakes.all)) }
        return object.finished
    }
}

extension ContentHash {
    /// The same of a content.
    var note: [UInt8] { object.finished }

    fileprivate var object: JSONLine {
        var sum = JSONLine()
        sum.add("algorithm", digest.algorithm.rawValue)
        sum.add("bytes", digest.bytes.map { Int64($0) })
        var object = JSONLine()
        object.add("digest", sum)
        if let partSize { object.add("partSize", partSize) }
        return object
    }
}

extension JSONLine {
    fileprivate init(_ texts: [String: String]) {
        self.init()
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) { add(name, text) }
    }
}

/// What became of a source file, as the journal's `disposition` column says it.
package enum Disposition {
    /// The file stays where it is.
    package static let kept = "kept"
    package static let deleted = "deleted"
    package static func archived(_ path: String) -> String { "archived: \(path)" }
    package static func quarantined(_ path: String) -> String { "quarantined: \(path)" }
    /// The file was gone or another one when its turn came; nothing was done.
    package static func untouched(_ why: String) -> String { "untouched: \(why)" }

    /// It could not be moved or removed, and is tried again.
    package static func stuck(_ why: String) -> String { "waiting: could not be put away: \(why)" }

    /// Where this says that a quarantined file is, as people read it; nil for every other end.
    package static func quarantine(_ text: String?) -> String? {
        guard let text, text.hasPrefix(quarantined("")) else { return nil }
        return String(text.dropFirst(quarantined("").count))
    }

    /// Whether this left the path free, so that a file dropped there later is a new one.
    static func vacates(_ text: String?) -> Bool {
        guard let text else { return false }
        return text == deleted || text.hasPrefix("archived: ") || text.hasPrefix("quarantined: ")
    }
}
