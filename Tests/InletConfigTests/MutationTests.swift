import InletConfig
import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// Random damage to a good file: never a crash, and every error stands inside the file.
struct MutationTests {
    @Test(arguments: 0..<8)
    func `a damaged file gives errors inside the file or none`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let names = FixtureTests.good
        for round in 0..<100 {
            var bytes = try FixtureTests.content("good/\(names[round % names.count]).yaml")
            for _ in 0..<Int.random(in: 1...6, using: &random) { Self.damage(&bytes, &random) }
            do throws(ConfigErrors) {
                let config = try ConfigFile.parse(
                    bytes: bytes, file: "a.yaml", types: standInTypes, environment: standInEnvironment,
                    defaults: standInDefaults)
                _ = ConfigPrinter.show(config, types: standInTypes)
            } catch {
                #expect(!error.list.isEmpty)
                let lines = Self.lines(bytes)
                for error in error.list {
                    #expect((1...lines.count).contains(error.line), "seed \(seed), round \(round): \(error)")
                    guard lines.indices.contains(error.line - 1) else { continue }
                    #expect((1...lines[error.line - 1] + 1).contains(error.column), "seed \(seed), round \(round)")
                }
            }
        }
    }

    private static let pieces: [[UInt8]] =
        ["\"", "'", "[", "}", ": ", "\n", "\t", "&a ", "*a", "<<", "- ", "#", "|", "\r", "日"]
        .map { Array($0.utf8) } + [[0xFF], [0], [0xC3], [0xEF, 0xBB, 0xBF]]

    private static func damage(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        let length = Int.random(in: 0...min(40, bytes.count - place), using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes.removeSubrange(place..<place + length)
        case 1:
            bytes.insert(
                contentsOf: Array(bytes[place..<place + length]), at: Int.random(in: 0...bytes.count, using: &random))
        case 2: bytes.insert(contentsOf: pieces.randomElement(using: &random) ?? [], at: place)
        case 3: if place < bytes.count { bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
        default: bytes.removeSubrange(place...)
        }
    }

    /// The number of characters on each line; an upper bound where bytes are not text.
    private static func lines(_ bytes: [UInt8]) -> [Int] {
        var counts = [0]
        var previous: Unicode.Scalar = " "
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            if ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"].contains(scalar) {
                if !(scalar == "\n" && previous == "\r") { counts.append(0) }
            } else {
                counts[counts.count - 1] += 1
            }
            previous = scalar
        }
        return counts
    }
}
