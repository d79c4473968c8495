import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// A request's body, read once, chunk by chunk, at the pace and to the byte that a fault may set.
struct IncomingBody {
    private var chunks: RequestBody.AsyncIterator
    private let channel: any Channel
    private let fault: FaultAction?
    private let count: @Sendable (Int) -> Void
    /// Content-Length, where the client gave one.
    let expected: Int?
    private(set) var received = 0

    /// - Parameter count: Is told the length of each chunk.
    init(
        _ request: Request, channel: any Channel, fault: FaultAction?, count: @escaping @Sendable (Int) -> Void
    ) {
        chunks = request.body.makeAsyncIterator()
        expected = request.headers[.contentLength].flatMap(Int.init)
        self.channel = channel
        self.fault = fault
        self.count = count
    }

    /// The next chunk; nil at the end. Throws `incompleteBody` when the connection ended before Content-Length.
    mutating func next() async throws -> ByteBuffer? {
        if case .reset(let limit)? = fault, received >= limit { try await drop() }
        guard let chunk = try await chunks.next() else {
            if case .reset? = fault { try await drop() }
            guard received >= expected ?? 0 else { throw StoreError.incompleteBody }
            return nil
        }
        received += chunk.readableBytes
        count(chunk.readableBytes)
        if case .slowRead(let rate)? = fault {
            let pause = Duration.seconds(Double(chunk.readableBytes) / Double(max(rate, 1)))
            try await Task.sleep(for: pause)
        }
        return chunk
    }

    mutating func discard() async throws {
        while try await next() != nil {}
    }

    /// The whole body, of at most 8 MiB.
    mutating func whole() async throws -> Data {
        var whole = Data()
        while let chunk = try await next() {
            whole.append(contentsOf: chunk.readableBytesView)
            guard whole.count <= 8 << 20 else {
                throw StoreError(status: 413, code: "EntityTooLarge", message: "This body has at most 8 MiB.")
            }
        }
        return whole
    }

    /// The whole body as a JSON value of at most 8 MiB.
    mutating func json<Value: Decodable>(_ type: Value.Type) async throws -> Value {
        let whole = try await whole()
        do {
            return try JSONDecoder().decode(type, from: whole)
        } catch {
            throw StoreError.badRequest("The body is not the JSON that this call takes.")
        }
    }

    private func drop() async throws -> Never {
        // It may have been closed by its other end.
        try? await channel.close()
        throw ConnectionDropped()
    }
}
