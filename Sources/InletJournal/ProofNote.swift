internal import InletCore

extension Proof {
    /// What the journal keeps of it: the JSON that `Codable` reads, written without an encoder, because every delivery has one.
    var note: [UInt8] {
        var object = JSONLine()
        object.add("key", key)
        object.add("method", method.rawValue)
        object.add("size", size)
        if let content { object.add("content", content.object) }
        if let etag { object.add("etag", etag) }
        if let url { object.add("url", url) }
        if let address { object.add("address", address) }
        if let details { object.add("details", JSONLine(details)) }
        if let keepsakes { object.add("keepsakes", JSONLine(keepsakes.all)) }
        return object.finished
    }
}

extension ContentHash {
    /// The same of a content.
    var note: [UInt8] { object.finished }

    fileprivate var object: JSONLine {
        var sum = JSONLine()
        sum.add("algorithm", digest.algorithm.rawValue)
        sum.add("bytes", digest.bytes.map { Int64($0) })
        var object = JSONLine()
        object.add("digest", sum)
        if let partSize { object.add("partSize", partSize) }
        return object
    }
}

extension JSONLine {
    fileprivate init(_ texts: [String: String]) {
        self.init()
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) { add(name, text) }
    }
}
