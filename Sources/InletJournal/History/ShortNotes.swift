internal import Foundation
internal import InletCore

/// Short forms of what the journal writes as JSON elsewhere: a history is mostly checksums. What they begin with tells the
/// two apart, so that a reader takes either.

extension ContentHash {
    /// `md5/8388608:BASE64`; without `/…` where it is over the whole content.
    var short: String {
        let parts = partSize.map { "/\($0)" } ?? ""
        return "\(digest.algorithm.rawValue)\(parts):\(Data(digest.bytes).base64EncodedString())"
    }

    init(short: String) throws {
        let halves = short.split(separator: ":", maxSplits: 1)
        let names = halves.first?.split(separator: "/") ?? []
        guard halves.count == 2, let algorithm = names.first.flatMap({ Digest.Algorithm(rawValue: String($0)) }),
            let bytes = Data(base64Encoded: String(halves[1])), names.count == 1 || Int64(names[1]) != nil
        else { throw UnreadableNote() }
        self.init(digest: Digest(algorithm, bytes), partSize: names.count == 2 ? Int64(names[1]) : nil)
    }

    /// From either form.
    init(note: [UInt8]) throws {
        if note.first == UInt8(ascii: "{") {
            self = try JournalJSON.decode(note)
        } else {
            try self.init(short: String(decoding: note, as: UTF8.self))
        }
    }
}

extension [Digest] {
    /// `sha256:BASE64,md5:BASE64`.
    var short: String { map { ContentHash(digest: $0, partSize: nil).short }.joined(separator: ",") }

    /// From either form.
    init(note: [UInt8]) throws {
        if note.first == UInt8(ascii: "[") {
            self = try JournalJSON.decode(note)
        } else {
            self = try String(decoding: note, as: UTF8.self).split(separator: ",").map {
                try ContentHash(short: String($0)).digest
            }
        }
    }
}

extension Proof {
    /// - Parameter key: that of its delivery, which the short form does not repeat.
    func short(of key: String?) throws -> [UInt8] { try JournalJSON.encode(ShortProof(self, of: key)) }

    /// From either form.
    init(note: [UInt8], of key: String?) throws {
        if note.first == UInt8(ascii: "[") {
            let short: ShortProof = try JournalJSON.decode(note)
            self = try short.proof(of: key)
        } else {
            self = try JournalJSON.decode(note)
        }
    }
}

/// A JSON array: method, size, and what there is of key, content, tag, URL, details, keepsakes and address.
private struct ShortProof: Codable {
    private var method: Proof.Method
    private var size: Int64
    private var texts: [String?]
    private var details: [String: String]?
    private var keepsakes: Keepsakes?
    private var address: String?

    init(_ proof: Proof, of key: String?) {
        (method, size) = (proof.method, proof.size)
        texts = [proof.key == key ? nil : proof.key, proof.content?.short, proof.etag, proof.url]
        (details, keepsakes, address) = (proof.details, proof.keepsakes, proof.address)
    }

    func proof(of key: String?) throws -> Proof {
        guard let key = texts[0] ?? key else { throw UnreadableNote() }
        var proof = Proof(
            key: key, size: size, method: method, content: try texts[1].map { try ContentHash(short: $0) },
            etag: texts[2], url: texts[3], details: details, keepsakes: keepsakes)
        proof.address = address
        return proof
    }

    init(from decoder: any Decoder) throws {
        var values = try decoder.unkeyedContainer()
        method = try values.decode(Proof.Method.self)
        size = try values.decode(Int64.self)
        texts = []
        for _ in 0..<4 { texts.append(try values.decodeIfPresent(String.self)) }
        details = try values.decodeIfPresent([String: String].self)
        keepsakes = try values.decodeIfPresent(Keepsakes.self)
        address = try values.decodeIfPresent(String.self)
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.unkeyedContainer()
        try values.encode(method)
        try values.encode(size)
        let hasNotes = details != nil || keepsakes != nil || address != nil
        let last = hasNotes ? texts.count : texts.lastIndex { $0 != nil }.map { $0 + 1 } ?? 0
        for text in texts.prefix(last) { try values.encode(text) }
        if hasNotes { try values.encode(details) }
        if keepsakes != nil || address != nil { try values.encode(keepsakes) }
        if address != nil { try values.encode(address) }
    }
}

struct UnreadableNote: Error, CustomStringConvertible {
    var description: String { "a note in the history cannot be read" }
}
