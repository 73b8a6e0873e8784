package main

func Example() {
	main()
	// Output:
	// {"bad": 160, "read": 14400, "write": 1440}
}
