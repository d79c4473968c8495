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

    /// The same answer, with another byte at `offset` of its body.
    func damaged(at offset: Int) -> Response {
        let body = body
        let damaged = ResponseBody(contentLength: body.contentLength) { writer in
            try await body.write(DamagingWriter(rest: offset, writer: writer))
        }
        return Response(status: status, headers: headers, body: damaged)
    }

    /// The same answer, whose Content-Length is off by `difference`, and whose connection ends after it.
    func claiming(_ difference: Int) -> Response {
        let body = body
        var headers = headers
        headers[.contentLength] = String(max(0, (body.contentLength ?? 0) + difference))
        let last = ResponseBody { writer in try await body.write(LastWriter(writer: writer)) }
        return Response(status: status, headers: headers, body: last)
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

/// Changes the byte that comes after so many.
private struct DamagingWriter: ResponseBodyWriter {
    var rest: Int
    var writer: any ResponseBodyWriter

    mutating func write(_ buffer: ByteBuffer) async throws {
        var buffer = buffer
        let place = buffer.readerIndex + rest
        if rest >= 0, let byte: UInt8 = buffer.getInteger(at: place) { buffer.setInteger(~byte, at: place) }
        rest -= buffer.readableBytes
        try await writer.write(buffer)
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { try await writer.finish(trailingHeaders) }
}

/// Ends the connection where the answer ends.
private struct LastWriter: ResponseBodyWriter {
    var writer: any ResponseBodyWriter

    mutating func write(_ buffer: ByteBuffer) async throws { try await writer.write(buffer) }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { throw ConnectionDropped() }
}
