import InletCore
import InletTestSupport
import Testing

@testable import InletJournal

/// What is written without an encoder must be what `Codable` reads.
@Suite(.seated) struct ProofNoteTests {
    @Test(arguments: 0..<200) func `a proof's note is read as the same proof`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let proof = Proof.random(&generator)
        let read: Proof = try JSON.decode(proof.note)
        #expect(read == proof)
        // What an encoder writes is read alike: `replaceProof` has one.
        #expect(try JSON.decode(JSON.encode(proof)) as Proof == proof)
        // No checksum has no bytes.
        if proof.content?.digest.bytes.isEmpty == true { return }
        for key in [proof.key, "other"] { #expect(try Proof(note: proof.short(of: key), of: key) == proof) }
    }

    @Test func `every method and algorithm is known by its own name`() throws {
        let methods: [Proof.Method] = [.md5Parts, .checksum, .size, .readBack, .carried, .sha256, .registered]
        for method in methods {
            for algorithm in [Digest.Algorithm.md5, .sha256, .crc32c] {
                let content = ContentHash(digest: Digest(algorithm, [0, 127, 128, 255]), partSize: .max)
                let proof = Proof(key: "k", size: .max, method: method, content: content)
                #expect(try JSON.decode(proof.note) as Proof == proof)
            }
        }
    }
}

extension Proof {
    fileprivate static func random(_ generator: inout SeededGenerator) -> Proof {
        let methods: [Method] = [.md5Parts, .checksum, .size, .readBack, .carried, .sha256, .registered]
        var proof = Proof(
            key: text(&generator), size: Int64.random(in: 0...Int64.max, using: &generator),
            method: methods.randomElement(using: &generator) ?? .size, content: content(&generator),
            etag: maybe(&generator, text), url: maybe(&generator, text), details: maybe(&generator, texts),
            keepsakes: maybe(&generator) { Keepsakes(texts(&$0)) })
        proof.address = maybe(&generator, text)
        return proof
    }

    private static func content(_ generator: inout SeededGenerator) -> ContentHash? {
        maybe(&generator) { generator in
            let bytes = (0..<Int.random(in: 0...32, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            let algorithms: [Digest.Algorithm] = [.md5, .sha256, .crc32c]
            return ContentHash(
                digest: Digest(algorithms.randomElement(using: &generator) ?? .md5, bytes),
                partSize: maybe(&generator) { Int64.random(in: 0...Int64.max, using: &$0) })
        }
    }

    private static func texts(_ generator: inout SeededGenerator) -> [String: String] {
        var texts: [String: String] = [:]
        for _ in 0..<Int.random(in: 0...3, using: &generator) { texts[text(&generator)] = text(&generator) }
        return texts
    }

    private static func maybe<Value>(
        _ generator: inout SeededGenerator, _ make: (inout SeededGenerator) -> Value
    ) -> Value? {
        Bool.random(using: &generator) ? make(&generator) : nil
    }

    /// Of what breaks JSON, and of every length that UTF-8 has.
    private static func text(_ generator: inout SeededGenerator) -> String {
        let pieces = [
            "\"", "\\", "\\u0041", "/", "\0", "\u{1}", "\u{1f}", "\u{7f}", "\n", "\r\n", "\t", "\u{8}", "\u{c}", "a",
            "é",
            "e\u{301}", "\u{2028}", "\u{feff}", "\u{fffd}", "日本", "🎬", "\u{10ffff}", "{}", "[,]", "'", " ",
        ]
        return (0..<Int.random(in: 0...12, using: &generator)).map { _ in
            pieces.randomElement(using: &generator) ?? ""
        }.joined()
    }
}
