import Foundation
import InletCore
import InletTestSupport
import Testing

/// Every input that the fuzzer was given or found, read once more: packaging/bench/fuzz.sh looks for new ones.
struct ReplayTests {
    private static let corpora = Bundle.module.resourceURL?.appending(path: "Corpora")

    private static func inputs(of target: String) throws -> [URL] {
        let folder = try #require(corpora).appending(path: target)
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    }

    @Test(arguments: FuzzTarget.all.map(\.name))
    func `a reader keeps its promises for every input of its corpus`(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        let inputs = try Self.inputs(of: name)
        #expect(!inputs.isEmpty)
        for input in inputs {
            let bytes = Array(try Data(contentsOf: input))
            do {
                try bytes.withUnsafeBytes { try target.read($0) }
            } catch {
                Issue.record("\(name)/\(input.lastPathComponent): \(error)")
            }
        }
    }

    @Test func `every corpus has a reader`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: try #require(Self.corpora).path)
        #expect(Set(folders) == Set(FuzzTarget.all.map(\.name)))
    }

    @Test(arguments: FuzzTarget.all.map(\.name))
    func `a reader keeps its promises for damaged inputs`(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        var random = SeededGenerator(seed: 4711)
        let inputs = try Self.inputs(of: name).sorted { $0.path < $1.path }.map { Array(try Data(contentsOf: $0)) }
        for round in 0..<300 {
            var bytes = inputs[round % inputs.count]
            for _ in 0..<Int.random(in: 1...4, using: &random) { Self.damage(&bytes, &random) }
            do {
                try bytes.prefix(target.longest).withUnsafeBytes { try target.read($0) }
            } catch {
                Issue.record("\(name), round \(round): \(error); \(Data(bytes).base64EncodedString())")
            }
        }
    }

    private static func damage(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        let length = Int.random(in: 0...min(16, bytes.count - place), using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes.removeSubrange(place..<place + length)
        case 1: bytes.insert(contentsOf: Array(bytes[place..<place + length]), at: place)
        case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
        default: if place < bytes.count { bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
        }
    }
}
