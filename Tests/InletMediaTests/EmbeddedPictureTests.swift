import InletCore
import InletTestSupport
import Testing

@testable import InletMedia

/// The small picture that cameras put into theirs.
struct EmbeddedPictureTests {
    private static let picture: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDB, 0, 2, 1, 2, 3, 0xFF, 0xD9]

    /// A block of an empty directory, and of one with the picture's place and length.
    private static func block(isBig: Bool, start: Int64 = 44, length: Int64 = 11, second: Int64 = 14) -> [UInt8] {
        func bytes(_ number: Int64, _ width: Int) -> [UInt8] { Sample.bytes(number, width, isBig: isBig) }
        func entry(_ tag: Int64, _ value: Int64) -> [UInt8] {
            bytes(tag, 2) + bytes(4, 2) + bytes(1, 4) + bytes(value, 4)
        }
        let header = Array((isBig ? "MM" : "II").utf8) + bytes(42, 2) + bytes(8, 4)
        let first = bytes(0, 2) + bytes(second, 4)
        return header + first + bytes(2, 2) + entry(0x0201, start) + entry(0x0202, length) + bytes(0, 4) + picture
    }

    private func found(_ file: [UInt8]) throws -> [UInt8]? {
        try EmbeddedPicture.read(
            BoundedBytes(size: Int64(file.count)) { offset, count in
                Array(file.dropFirst(Int(offset)).prefix(count))
            })
    }

    @Test(arguments: [false, true]) func `the picture is found, in either byte order`(isBig: Bool) throws {
        #expect(try found(Sample.jpeg(Self.block(isBig: isBig))) == Self.picture)
    }

    @Test func `a place outside of the block is none`() throws {
        for (start, length) in [(44, 12), (45, 11), (-1, 11), (44, -1), (0xFFFF_FFF0, 0x20), (44, 0), (8, 11)]
            as [(Int64, Int64)]
        {
            #expect(try found(Sample.jpeg(Self.block(isBig: true, start: start, length: length))) == nil)
        }
        for second in [0, 13, 1000, 0xFFFF_FFFF] as [Int64] {
            #expect(try found(Sample.jpeg(Self.block(isBig: false, second: second))) == nil)
        }
    }

    @Test func `other files have none`() throws {
        #expect(try found(Sample.jpeg(Sample.tiff())) == nil)
        #expect(try found(Self.block(isBig: true)) == nil)
        #expect(try found([]) == nil && found([0xFF, 0xD8]) == nil)
    }

    @Test func `whatever a block says, the answer is a part of it or none`() throws {
        var random = SeededGenerator(seed: 28)
        for _ in 0..<20_000 {
            var block = Self.block(isBig: Bool.random(using: &random))
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 4..<block.count, using: &random)
                block[place] = UInt8.random(in: 0...255, using: &random)
            }
            block = Array(block.prefix(Int.random(in: 0...block.count, using: &random)))
            guard let picture = try found(Sample.jpeg(block)) else { continue }
            #expect(picture.count <= block.count && picture.starts(with: [0xFF, 0xD8, 0xFF]))
        }
    }
}
