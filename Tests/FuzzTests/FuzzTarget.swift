/// A promise that did not hold for some bytes.
struct Broken: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// Throws `Broken` unless `holds`.
func promise(_ holds: Bool, _ said: @autoclosure () -> String) throws(Broken) {
    if !holds { throw Broken(said()) }
}

/// A reader of bytes that come from strangers: the fuzzer runs it on what it makes up, the tests on the corpus.
struct FuzzTarget: Sendable {
    /// Also the folder of its corpus.
    let name: String
    /// Longer inputs tell nothing more and make it slow.
    let longest: Int
    /// Reads the bytes as the agent would. - Throws: `Broken` for a promise that was not kept; every other end of it is a crash.
    let read: @Sendable (UnsafeRawBufferPointer) throws(Broken) -> Void

    init(
        _ name: String, longest: Int = 4096, _ read: @escaping @Sendable (UnsafeRawBufferPointer) throws(Broken) -> Void
    ) {
        self.name = name
        self.longest = longest
        self.read = read
    }

    static let all: [FuzzTarget] = kernel + neighbours + config + names + answers + media
}
