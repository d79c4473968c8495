/// What a step of a delivery heard that is no success, as its pipeline understands it.
package struct Heard: Sendable, Equatable {
    /// What the answer says, and in whose words.
    package enum Word: Sendable, Equatable, CaseIterable {
        /// Not in the service's own form: a host's or a proxy's page, a redirect, an answer that breaks off. It is the word of
        /// something that stands before the service, or of nobody.
        case foreign
        /// In the service's own form, as all below; about this object: its size, its name, its type, a condition on its key.
        case object
        /// About every file alike: the bucket, a clock, room.
        case everybody
        /// About who we are.
        case credentials
        /// A refusal that does not say for whose sake.
        case refusal
        /// What passes by itself.
        case passing
    }

    /// The status of HTTP; 0 where there is no whole answer.
    package var status: Int
    package var word: Word

    package init(_ status: Int, _ word: Word) {
        self.status = status
        self.word = word
    }

    /// An answer that had begun, and is not whole.
    package static let broken = Heard(0, .foreign)

    /// What a status says where no words of the service are known for it.
    ///
    /// - Parameter isOwn: whether the answer is in the service's own form.
    package init(_ status: Int, isOwn: Bool) {
        let word: Word =
            switch status {
            case _ where !isOwn: .foreign
            case ..<400: .foreign
            case 412, 413, 414, 415, 422: .object
            case 408, 425, 429, 500...: .passing
            default: .refusal
            }
        self.init(status, word)
    }

    /// Whether it says that something is out of order for now, which whoever stands before a service may say in its place.
    var passes: Bool { word == .passing || word == .foreign && (status >= 500 || [408, 425, 429].contains(status)) }
}
