import Foundation
import InletCore
import InletTestSupport
import NIOCore
import Testing

@testable import InletSandbox

@Suite struct FormReaderTests {
    /// The pieces of `body` when it comes in chunks of the given lengths, the last one again and again.
    private static func read(_ body: Data, type: String, chunks: [Int]) throws -> (pieces: [String], isFinished: Bool)?
    {
        guard var reader = FormReader(contentType: type) else { return nil }
        var pieces: [String] = []
        var content: [UInt8] = []
        var (rest, lengths) = (body, chunks[...])
        while !rest.isEmpty {
            let length = lengths.count > 1 ? lengths.removeFirst() : lengths.first ?? 1
            try reader.feed(ByteBuffer(bytes: rest.prefix(length))) { piece in
                switch piece {
                case .begin(let part): pieces.append("\(part.name)|\(part.fileName ?? "-")|\(part.contentType ?? "-")")
                case .content(let bytes): content += bytes
                case .end:
                    pieces.append(content.hex)
                    content = []
                }
            }
            rest = rest.dropFirst(length)
        }
        return (pieces, reader.isFinished)
    }

    private static let text = """
        --xYz\r\nContent-Disposition: form-data; name="label"\r\n\r\nA song\r\n\
        --xYz\r\ncontent-disposition: form-data; name="file"; filename="a \\"b\\" \\c.mp4"\r\n\
        Content-Type: video/mp4\r\n\r\n\r\n--xY\r\n--xYy\r\n\r\n--xYz\r\n\
        Content-Disposition: form-data; name=empty\r\n\r\n\r\n--xYz--\r\nepilogue
        """
    private static let pieces = [
        "label|-|-", Data("A song".utf8).hex, "file|a \"b\" \\c.mp4|video/mp4", Data("\r\n--xY\r\n--xYy\r\n".utf8).hex,
        "empty|-|-", "",
    ]

    @Test func `a form is read the same however it is cut`() throws {
        var generator = SeededGenerator(seed: 7)
        let body = Data(Self.text.utf8)
        let cuts =
            (1...body.count).map { [$0] }
            + (0..<200).map { _ in (0..<40).map { _ in .random(in: 1...9, using: &generator) } }
        for chunks in cuts {
            let read = try #require(try Self.read(body, type: "multipart/form-data; boundary=xYz", chunks: chunks))
            #expect(read.pieces == Self.pieces && read.isFinished, "\(chunks)")
        }
    }

    @Test func `a form that is cut off is not finished`() throws {
        let body = Data(Self.text.utf8)
        let end = body.count - "--\r\nepilogue".utf8.count
        for length in stride(from: 0, through: end, by: 7) {
            let read = try #require(
                try Self.read(body.prefix(length), type: "multipart/form-data; boundary=\"xYz\"", chunks: [16]))
            #expect(!read.isFinished)
        }
    }

    @Test(arguments: [nil, "application/json", "multipart/form-data", "multipart/form-data; boundary="])
    func `what names no boundary is no form`(_ type: String?) {
        #expect(FormReader(contentType: type) == nil)
    }

    @Test func `a head without end is refused, and a preamble is not kept`() throws {
        let head = Data("--x\r\nName: ".utf8) + Data(repeating: 97, count: 20_000)
        #expect(throws: SandboxReply.self) {
            try Self.read(head, type: "multipart/form-data; boundary=x", chunks: [999])
        }
        let preamble = Data(repeating: 97, count: 100_000) + Data("\r\n--x\r\n\r\nz\r\n--x--".utf8)
        let read = try Self.read(preamble, type: "multipart/form-data; boundary=x", chunks: [1000])
        #expect(read?.pieces == ["|-|-", "7a"] && read?.isFinished == true)
    }
}
