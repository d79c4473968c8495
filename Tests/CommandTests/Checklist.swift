/// What became of each capability of the reference documents: S0, a client of a storage service, S1, an upload queue that
/// survives crashes, S2, spaces with models, sessions and markers, S3, large uploads to a media server, and S4, product
/// videos that become pictures.
enum Checklist {
    enum Answer {
        /// Inlet does it, and these tests show it; `later` names the part of the row that is still to come.
        case shown(by: [String], later: String? = nil)
        /// Inlet does something better, which these tests show; `why` is a sentence about the difference.
        case superseded(by: [String], why: String)
        /// Another issue's work, as "issue N of 8: what it is".
        case later(String)
    }

    struct Row {
        let id: String
        let answer: Answer

        init(_ id: String, _ answer: Answer) {
            self.id = id
            self.answer = answer
        }
    }

    static let rows = storage + queue + roboscope + gigHive + vopi

    /// The ids that the checklist gives out, in its order.
    static let ids =
        (1...34).map { id("S0", $0) } + (1...36).map { id("S1", $0) } + (1...32).map { id("S2", $0) }
        + (1...20).map { id("S3", $0) } + (1...35).map { id("S4", $0) }

    private static func id(_ family: String, _ number: Int) -> String {
        "\(family).\(number < 10 ? "0" : "")\(number)"
    }
}
