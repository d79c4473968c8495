import InletCore
import InletLinux

/// The body of a request on its way into libcurl's buffer.
extension Transfer {
    /// What the callback does when curl has room for the body.
    enum Piece {
        /// Bytes that were put there; 0 = the body has ended.
        case bytes(Int)
        /// It is not this request's turn: curl shall wait until the loop says so.
        case later
        /// The failure is kept.
        case failed
    }

    /// Puts the next bytes into `room`, as far as the lane has any for this request.
    func givePiece(_ room: UnsafeMutableRawBufferPointer, now: Instant) -> Piece {
        let left = request.body.length - position
        guard let place, left > 0 else { return giveBody(room).map { .bytes($0) } ?? .failed }
        let allowance = place.allowance(of: left, at: now)
        guard allowance > 0 else {
            isPaused = true
            deadlines.held(at: now)
            return .later
        }
        // curl may ask before the loop lets it go on: when it sends the body anew.
        isPaused = false
        deadlines.released(at: now)
        let count = giveBody(UnsafeMutableRawBufferPointer(rebasing: room.prefix(Int(clamping: allowance))))
        place.use(Int64(count ?? 0))
        return count.map { .bytes($0) } ?? .failed
    }

    /// The whole body of a small request, where the lane has bytes for all of it.
    static func inlineBody(_ request: HTTPRequest, _ place: LanePlace?, _ now: Instant) -> [UInt8]? {
        guard let body = request.inlineBody, let place else { return request.inlineBody }
        let length = Int64(body.count)
        guard place.allowance(of: length, at: now) >= length else { return nil }
        place.use(length)
        return body
    }

    /// Puts the next bytes into `room` and returns their number, 0 at the end; nil after a failure, which is kept.
    private func giveBody(_ room: UnsafeMutableRawBufferPointer) -> Int? {
        guard position < request.body.length else { return 0 }
        switch request.body {
        case .none: return 0
        case .bytes(let bytes): return give(bytes, from: 0, room)
        case .slice(let source, let offset, let length): return give(source, offset, length, from: 0, room)
        case .form(let header, let source, let offset, let length, let footer):
            let fileStart = Int64(header.count)
            if position < fileStart { return give(header, from: 0, room) }
            if position < fileStart + length { return give(source, offset, length, from: fileStart, room) }
            return give(footer, from: fileStart + length, room)
        }
    }

    /// Bytes of a piece that begins at `start` of the body.
    private func give(_ bytes: [UInt8], from start: Int64, _ room: UnsafeMutableRawBufferPointer) -> Int {
        let rest = bytes[Int(position - start)...].prefix(room.count)
        room.copyBytes(from: rest)
        position += Int64(rest.count)
        return rest.count
    }

    /// Bytes of the file's `length` bytes from `offset`, which begin at `start` of the body.
    private func give(
        _ source: SourceFile, _ offset: Int64, _ length: Int64, from start: Int64,
        _ room: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let place = position - start
        let target = UnsafeMutableRawBufferPointer(rebasing: room[..<Int(min(Int64(room.count), length - place))])
        do throws(SystemError) {
            let count = try source.read(into: target, at: offset + place)
            guard count > 0 else {
                return fail(source, "ended at byte \(offset + place) while it was sent: it has been cut")
            }
            position += Int64(count)
            if place + Int64(count) < length { return count }
            // The last bytes are held back from a file that was written to: what went out may be a mixture.
            guard try source.identity().isUntouched(since: source.opened) else {
                return fail(source, "was changed while it was sent")
            }
            return count
        } catch {
            failure = TransferError(.sourceUnreadable, "\(request.label): \(error)", isOutage: false)
            return nil
        }
    }

    private func fail(_ source: SourceFile, _ why: String) -> Int? {
        failure = TransferError(
            .sourceChanged, "\(request.label): \(source.path.display) \(why)", isOutage: false)
        return nil
    }
}
