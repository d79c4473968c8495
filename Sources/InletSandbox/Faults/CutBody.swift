import HTTPTypes
import Hummingbird
import NIOCore

extension Response {
    /// The same answer, whose connection ends after so many bytes of its body.
    func cut(afterBytes count: Int) -> Response {
        let body = body
        let cut = ResponseBody(contentLength: body.contentLength) { writer in
            try await body.write(CutWriter(rest: count, writer: writer))
        }
        return Response(status: status, headers: headers, body: cut)
    }
}

/// Passes on so many bytes, and ends the connection then.
private struct CutWriter: ResponseBodyWriter {
    var rest: Int
    var writer: any ResponseBodyWriter

    mutating func write(_ buffer: ByteBuffer) async throws {
        var buffer = buffer
        let part = buffer.readSlice(length: min(rest, buffer.readableBytes)) ?? ByteBuffer()
        rest -= part.readableBytes
        try await writer.write(part)
        if rest == 0 { throw ConnectionDropped() }
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { try await writer.finish(trailingHeaders) }
}
