/// What `inlet init` asks for a destination of one kind, and what it writes for files that go there.
package struct DestinationSetup: Sendable {
    /// One key of the destination that is asked for.
    package struct Question: Sendable {
        package enum Kind: Sendable {
            case text
            case path
            /// With the environment variable that is proposed.
            case secret(variable: String)
        }

        /// Whether there must be an answer.
        package enum Need: Sendable {
            case always
            case never
            /// Where the question with this key has none.
            case unless(String)
            /// The same, and it is not asked where that one has an answer.
            case insteadOf(String)
        }

        /// As in the configuration.
        package let key: String
        package let words: String
        /// What the option for it is for, on the command line; secrets have none of their own.
        package let help: String
        package let kind: Kind
        /// A value that the reader takes, for checks of the others while this is not known yet.
        package let example: String
        package let need: Need
        /// The section of the destination that the key is in.
        package let section: String?

        package init(
            _ key: String, _ words: String, _ kind: Kind = .text, help: String = "", example: String = "x",
            need: Need = .always, in section: String? = nil
        ) {
            self.key = key
            self.words = words
            self.help = help
            self.kind = kind
            self.example = example
            self.need = need
            self.section = section
        }

        /// The key of the question that makes this one unnecessary.
        package var alternative: String? {
            switch need {
            case .always, .never: nil
            case .unless(let key), .insteadOf(let key): key
            }
        }
    }

    /// What such a destination is called.
    package var name: String
    package var questions: [Question]
    /// Keys of the destination that one may want next, as lines of YAML without their `#`.
    package var hints: [String] = []
    /// Lines of the route, without its name, `to` and what becomes of the file.
    package var route: [String] = []
    /// Answers as options, for the help.
    package var example: String?

    package init(
        name: String, questions: [Question], hints: [String] = [], route: [String] = [], example: String? = nil
    ) {
        self.name = name
        self.questions = questions
        self.hints = hints
        self.route = route
        self.example = example
    }

    /// For a route whose files have the same folders there as here.
    static let mirrored = ["key: \"{dir}/{name}\"              # the same folders there as here"]

    /// Asked only of a destination that stores files for another one.
    package static let publicURL = Question(
        "public_url", "Where can its objects be read without a login (their public address)?",
        help: "where objects can be read", example: "https://cdn.example.com")
}
