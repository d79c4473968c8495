import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import SystemPackage

import struct NIOCore.ByteBuffer

/// The store's own calls: bodies in through presigned PUTs, objects out.
struct StoreCalls: Sendable {
    let store: ObjectStore
    let faults: Faults<SpiralOperation>

    func part(_ number: Int, upload: String, key: String, _ body: inout IncomingBody, fault: FaultAction?) async throws
        -> Response
    {
        let key = try ObjectKey(key)
        try store.checkPart(number, upload: upload, key: key)
        var file = try IncomingFile(in: store.folders.incoming)
        try await receive(&body, into: &file)
        let etag = self.etag(of: file.hash.finish().md5, fault: fault)
        try store.keepPart(number, upload: upload, etag: etag, file)
        return tagged("\"\(etag)\"", fault: fault)
    }

    /// `contentType` is covered by the signature, so it is the one that was presigned.
    func single(_ key: String, contentType: String?, _ body: inout IncomingBody, fault: FaultAction?) async throws
        -> Response
    {
        let key = try ObjectKey(key)
        var file = try IncomingFile(in: store.folders.incoming)
        try await receive(&body, into: &file)
        let object = try store.keepSingle(key, contentType: contentType ?? "application/octet-stream", file)
        return tagged("\"\(etag(of: object.md5.bytes, fault: fault))\"", fault: fault)
    }

    private func receive(_ body: inout IncomingBody, into file: inout IncomingFile) async throws {
        guard body.expected != nil else { throw StoreError.missingLength }
        while let chunk = try await body.next() { try file.write(chunk) }
    }

    private func etag(of md5: [UInt8], fault: FaultAction?) -> String {
        switch fault {
        case .wrongETag(.random): faults.randomBytes(16).hex
        case .wrongETag(.constant): ContentHash.md5(md5).hex
        default: md5.hex
        }
    }

    private func tagged(_ etag: String, fault: FaultAction?) -> Response {
        Response(status: .ok, headers: fault == .missingETag ? [:] : [.eTag: etag])
    }
}
